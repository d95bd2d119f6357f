import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Accounts, startAccounts } from '../server/accounts.ts'
import { findProgram } from '../support/servers/server.ts'
import { peerSuite } from '../support/suite/peer.ts'

const run = promisify(execFile)
const missing = ['mcs', 'mono'].every((name) => findProgram(name) !== undefined)
  ? undefined
  : 'mono-mcs is not installed'
const clients = join(import.meta.dirname, 'clients')

peerSuite(missing, 'R6 C# of /types/csharp with Mono, and a simulated ServiceStack.Client', () => {
  let server: Accounts
  let folder = ''
  beforeAll(async () => {
    server = await startAccounts()
    folder = mkdtempSync(join(tmpdir(), 'svc-csharp-'))
  })
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true })
    await server.close()
  })

  const compile = async (query: string, target: string, ...sources: readonly string[]): Promise<string> => {
    const types = join(folder, 'dtos.cs')
    writeFileSync(types, await (await fetch(`${server.server.url}/types/csharp?${query}`)).text())
    const out = join(folder, `types.${target === 'exe' ? 'exe' : 'dll'}`)
    const files = [join(clients, 'Stubs.cs'), types, ...sources]
    await run('mcs', ['-warnaserror', `-target:${target}`, `-out:${out}`, '-r:System.Core.dll', ...files], {
      timeout: 60_000,
    })
    return out
  }

  test('R6 N1 the types compile, enumerations count from 1, and a request names its answer, its verb and its route', async () => {
    const { stdout } = await run('mono', [await compile('', 'exe', join(clients, 'Client.cs'))], { timeout: 60_000 })
    expect(stdout.trim().split(/\r?\n/)).toEqual(['1 13 True', 'GET /healthcheck', 'False False False'])
  }, 60_000)

  test.each([
    'MakePartial=False&MakeVirtual=False&MakeInternal=True&AddReturnMarker=False',
    'AddDataContractAttributes=True&AddIndexesToDataMembers=True&AddGeneratedCodeAttributes=True',
    'AddResponseStatus=True&AddImplicitVersion=3&InitializeCollections=False&GlobalNamespace=Acme.Types',
    'IncludeTypes=HealthCheckRequest.*&AddNamespaces=System.Text&AddDescriptionAsComments=False',
  ])(
    'R6 the types compile with %s',
    async (query) => expect(await compile(query, 'library')).toContain('types.dll'),
    60_000,
  )
})
