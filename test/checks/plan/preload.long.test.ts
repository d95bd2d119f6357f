import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type DriverName, drivers } from '../../../src/core/checks/drivers/index.ts'
import { monitors } from '../../../src/core/checks/kinds/index.ts'
import { type PostgresServer, postgresMissing, startPostgres } from '../../support/servers/postgres.ts'
import { suiteWith } from '../../support/suite/peer.ts'
import { preloaded } from './preloaded.ts'

const folder = new URL('../../../src/core/checks/kinds', import.meta.url).pathname

/** The modules that a file imports at once, and those that it imports on first use, without types. */
function importsOf(file: string): { readonly atOnce: readonly string[]; readonly whenDue: readonly string[] } {
  const code = readFileSync(file, 'utf8')
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|\s)\/\/.*$/gm, '$1')
  const find = (pattern: RegExp): readonly string[] =>
    [...code.matchAll(pattern)].map(([, specifier = '']) => specifier)
  return {
    atOnce: find(/(?:^|\n)(?:import|export) (?!type )[^'"]*?from '([^']+)'/g),
    whenDue: [
      ...find(/(?<!typeof )\bimport\('([^']+)'\)/g),
      ...find(/\bloadDriver\('([^']+)'\)/g).map((name) => drivers[name as DriverName]),
    ],
  }
}

/** Packages that the files of a kind import when they are due. */
function packagesWhenDue(kind: string): readonly string[] {
  const [files, packages] = [new Set<string>(), new Set<string>()]
  const visit = (file: string): void => {
    if (files.has(file)) return
    files.add(file)
    const { atOnce, whenDue } = importsOf(file)
    for (const one of atOnce) if (one.startsWith('.')) visit(join(dirname(file), one))
    // Parts of Node are in its program: nothing has to be opened for them.
    for (const one of whenDue) if (!one.startsWith('.') && !one.startsWith('node:')) packages.add(one)
  }
  const inFolder = join(folder, kind, 'index.ts')
  visit(existsSync(inFolder) ? inFolder : join(folder, `${kind}.ts`))
  // It asks the other systems what Linux has in /proc.
  if (process.platform === 'linux') packages.delete('systeminformation')
  return [...packages]
}

test('each kind preloads the packages that its sources import lazily', async () => {
  const due = Object.fromEntries(Object.keys(monitors).map((kind) => [kind, packagesWhenDue(kind)]))
  expect(due).toMatchObject({ postgres: ['pg'], oidc: ['jose'], sftp: ['ssh2'], http: ['fast-xml-parser'], dns: [] })
  const requests = (await preloaded()) as Readonly<Record<string, readonly string[]>>
  const missing = Object.entries(due).map(([kind, packages]) => [
    kind,
    packages.filter((one) => !requests[kind]?.includes(one)),
  ])
  expect(missing.filter(([, packages]) => packages?.length !== 0)).toEqual([])
})

suiteWith(postgresMissing, 'a run at a real PostgreSQL', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.remove())

  test('opens no file of the driver', async () => {
    expect(await preloaded('postgres', server.url('postgres'))).toEqual({ files: [], failed: [] })
  })
})
