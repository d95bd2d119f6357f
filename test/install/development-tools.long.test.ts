import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const root = join(import.meta.dirname, '..', '..')
const node = join('node_modules', 'node')
const binary = join(node, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')

/** The parts of this project that the verification reads. The binary is the installed one. */
function copied(): string {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'tools'))
  mkdirSync(join(folder, node, 'bin'), { recursive: true })
  for (const path of [join('tools', 'node-binary.json'), join(node, 'package.json'), 'package-lock.json', binary]) {
    cpSync(join(root, path), join(folder, path))
  }
  return folder
}
function verify(folder: string) {
  const { npm_node_execpath: _, ...env } = process.env
  const args = [join(root, 'tools', 'verify-node.mjs'), folder]
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env })
  return { status, text: `${stdout}${stderr}` }
}

test('the Node of the development dependencies is the executable of its platform package', () => {
  expect(verify(root)).toMatchObject({ status: 0, text: expect.stringMatching(/is the executable of node-/) })
})

test('a changed Node binary is refused', () => {
  const folder = copied()
  const bytes = readFileSync(join(folder, binary))
  const middle = Math.floor(bytes.length / 2)
  bytes[middle] = (bytes[middle] ?? 0) ^ 1
  writeFileSync(join(folder, binary), bytes)
  expect(verify(folder)).toMatchObject({ status: 1, text: expect.stringContaining('is not the executable of node-') })
})

test('a Node of another version, and one that its script did not install, are refused', () => {
  const folder = copied()
  const file = join(folder, node, 'package.json')
  const description = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
  writeFileSync(file, JSON.stringify({ ...description, version: '24.21.1' }))
  expect(verify(folder)).toMatchObject({ status: 1, text: expect.stringContaining('version 24.21.1 is installed') })
  writeFileSync(file, JSON.stringify(description))
  rmSync(join(folder, binary))
  expect(verify(folder)).toMatchObject({ status: 1, text: expect.stringContaining('preinstall script did not run') })
})

/** Runs the audit with a program named npm that prints a recorded answer. */
function audit(answer: unknown, more: Record<string, string> = {}) {
  const folder = temporaryFolder()
  const script = `#!${process.execPath}\nprocess.stdout.write(${JSON.stringify(JSON.stringify(answer))})\n`
  writeFileSync(join(folder, 'npm'), script, { mode: 0o700 })
  const { SVC_AUDIT_OFFLINE: _, ...own } = process.env
  const env = { ...own, PATH: `${folder}${delimiter}${process.env['PATH'] ?? ''}`, ...more }
  const ran = spawnSync(process.execPath, [join(root, 'tools', 'audit.mjs')], { encoding: 'utf8', env })
  return { status: ran.status, text: `${ran.stdout}${ran.stderr}` }
}

test.skipIf(process.platform === 'win32')('a known vulnerability fails the build (simulated answers of npm)', () => {
  const one = { name: 'left-pad', severity: 'high', range: '<1.3.1' }
  const metadata = { vulnerabilities: { total: 1 }, dependencies: { total: 600 } }
  expect(audit({ vulnerabilities: { 'left-pad': one }, metadata })).toEqual({
    status: 1,
    text: 'Known vulnerability: left-pad <1.3.1 (high)\n',
  })
  // Whoever says that there is no network is not believed when there is one.
  expect(audit({ vulnerabilities: { 'left-pad': one }, metadata }, { SVC_AUDIT_OFFLINE: '1' }).status).toBe(1)
  const none = { vulnerabilities: {}, metadata: { ...metadata, vulnerabilities: { total: 0 } } }
  expect(audit(none)).toEqual({ status: 0, text: 'Known vulnerabilities: none in 600 dependencies\n' })
})

test.skipIf(process.platform === 'win32')(
  'an audit without an answer fails the build (simulated answers of npm)',
  () => {
    const url = 'https://registry.example/-/npm/v1/security/advisories/bulk'
    const refused = { message: `405 Method Not Allowed - POST ${url}`, statusCode: 405 }
    // 3: the registry has no such endpoint, and never has an answer.
    const noEndpoint =
      'Known vulnerabilities: not checked, because no audit endpoint is reachable (405 Method Not Allowed)\n'
    expect(audit(refused)).toEqual({ status: 3, text: noEndpoint })
    expect(audit({ message: `404 Not Found - POST ${url}`, statusCode: 404 }).status).toBe(3)
    expect(audit({ message: `503 Service Unavailable - POST ${url}`, statusCode: 503 })).toMatchObject({ status: 2 })
    expect(audit('')).toEqual({
      status: 2,
      text: 'Known vulnerabilities: not checked, because no audit endpoint is reachable (no answer)\n',
    })
    expect(audit(refused, { SVC_AUDIT_OFFLINE: '1' })).toEqual({ status: 0, text: noEndpoint })
  },
)
