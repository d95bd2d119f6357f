import { spawnSync } from 'node:child_process'
import { findProgram } from '../servers/server.ts'

const program = findProgram('xmllint')
export const xmllintMissing = program === undefined ? 'xmllint is not installed' : undefined

const schema = new URL('junit.xsd', import.meta.url).pathname

/** Validates a JUnit report against the schema. Status 3 is a report that does not conform. */
export function xmllint(report: string): { readonly status: number | null; readonly findings: string } {
  const { status, stderr } = spawnSync(program ?? '', ['--noout', '--nonet', '--schema', schema, '-'], {
    input: report,
    encoding: 'utf8',
  })
  return { status, findings: stderr }
}
