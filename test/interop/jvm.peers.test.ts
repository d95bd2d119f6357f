import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { startAccounts } from '../server/accounts.ts'
import { findProgram } from '../support/servers/server.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { password, serveBuilt } from './served.ts'

const run = promisify(execFile)

/** Where `.ci/clients` puts the jars. */
const home = join(import.meta.dirname, '../../node_modules/.cache/java-clients')
const jars = existsSync(home) ? readdirSync(home).map((name) => join(home, name)) : []
const library = jars.filter((path) => /\/(client|gson|kotlin-stdlib)-/.test(path)).join(delimiter)
const missing =
  jars.length === 0
    ? 'the Java client library is not fetched: .ci/clients fetches it from Maven Central'
    : findProgram('javac') === undefined
      ? 'javac is not installed'
      : undefined
const clients = join(import.meta.dirname, 'clients')
const folders: string[] = []
const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-jvm-'))
  folders.push(folder)
  return folder
}
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

async function save(folder: string, name: string, url: string): Promise<string> {
  const response = await fetch(url)
  const source = await response.text()
  expect([response.status, source.slice(0, 11)]).toEqual([200, '/* Options:'])
  const path = join(folder, name)
  writeFileSync(path, source)
  return path
}

/** Compiles the generated types and the program that uses them, without a warning, and returns its report. */
async function java(url: string): Promise<unknown> {
  const folder = newFolder()
  const types = await save(folder, 'Dtos.java', `${url}/types/java?Package=org.example&GlobalNamespace=Dtos`)
  const compiled = await run(
    'javac',
    ['-Xlint:all', '-Werror', '-cp', library, '-d', folder, types, join(clients, 'Client.java')],
    { timeout: 120_000 },
  )
  expect(compiled.stderr).toBe('')
  return report(url, folder, 'Client')
}

async function kotlin(url: string): Promise<unknown> {
  const folder = newFolder()
  const types = await save(folder, 'dtos.kt', `${url}/types/kotlin?Package=org.example`)
  const compiler = ['-cp', jars.join(delimiter), 'org.jetbrains.kotlin.cli.jvm.K2JVMCompiler']
  const compiled = await run(
    'java',
    [...compiler, '-no-stdlib', '-no-reflect', '-cp', library, '-d', folder, types, join(clients, 'Client.kt')],
    { timeout: 240_000 },
  )
  expect(compiled.stderr).not.toMatch(/error:/)
  return report(url, folder, 'ClientKt')
}

async function report(url: string, folder: string, program: string): Promise<unknown> {
  const { stdout } = await run('java', ['-cp', `${library}${delimiter}${folder}`, program, url, password], {
    timeout: 60_000,
  })
  return JSON.parse(stdout)
}

const well = {
  status: 'Success',
  failed: 0,
  monitors: expect.any(Number),
  start: expect.any(Number),
  duration: expect.stringMatching(/^PT[\d.]+S$/),
}
/** The report of every program. Errors have the names of the library, whatever the server writes. */
const expected = {
  'health by GET': well,
  'health by its own verb': well,
  unhealthy: {
    status: 503,
    error: {
      errorCode: 'HealthCheckFailed',
      message: expect.stringContaining('Ftp'),
      errors: [expect.objectContaining({ errorCode: 'HealthCheckFailed', fieldName: 'Configuration/configured' })],
    },
  },
  'unhealthy, suppressed': { ...well, status: 'Failure', failed: 1 },
  'field errors': {
    status: 400,
    error: { errorCode: 'NotEmpty', errors: [{ fieldName: 'ExecutionMode' }, { fieldName: 'ServerType' }] },
  },
  nobody: { status: 401, error: { errorCode: 'Unauthorized', message: 'Not Authenticated' } },
  'wrong password': { status: 401, error: { errorCode: 'Unauthorized', message: 'Invalid Username or Password' } },
  assign: ['R1', 'R2'],
  unassign: ['R2'],
  heartbeat: expect.any(Number),
  'sign-out': {},
  after: { status: 401, error: { message: 'Not Authenticated' } },
}
const expectedOfJava = {
  ...expected,
  'health by GET': { ...well, resultsPassed: true },
  'health by POST': { ...well, resultsPassed: true },
  'user that does not exist': { status: 404, error: { errorCode: 'NotFound', message: 'nobody' } },
  'by token': ['R2'],
  'by refresh token': ['R2'],
  'renewed token': true,
  // Java writes a cookie with Max-Age in quotes, and $Version, $Path and $Domain beside it.
  'by the remembered cookie': ['R2'],
}
const session = { UserName: 'Ann', Roles: ['Admin', 'Editor'], BearerToken: expect.any(String) }
const sessionInCamelCase = { userName: 'Ann', roles: ['Admin', 'Editor'], bearerToken: expect.any(String) }

peerSuite(missing, 'net.servicestack:client 1.0.49 for Java, unmodified, with the types of /types/java', () => {
  test('R6 A1 A9 O2 H1 signs in, assigns, unassigns, gets health, sends a heartbeat, and reads dates, durations and errors', async () => {
    const server = await serveBuilt()
    onTestFinished(() => server.close())

    expect(await java(server.url)).toMatchObject({ ...expectedOfJava, 'sign-in': session })
  }, 180_000)

  test('R6 N9 the same program works at a server whose names are in camelCase', async () => {
    const { server, close } = await startAccounts({ names: 'camelCase' })
    onTestFinished(() => close())

    expect(await java(server.url)).toMatchObject({ ...expectedOfJava, 'sign-in': sessionInCamelCase })
  }, 180_000)

  test('R6 the types compile with every option', async () => {
    const server = await startAccounts()
    onTestFinished(() => server.close())

    for (const query of [
      'AddPropertyAccessors=False&AddResponseStatus=True&AddImplicitVersion=3',
      'SettersReturnThis=False&AddServiceStackTypes=False&AddDescriptionAsComments=False',
      'IncludeTypes=HealthCheckRequest.*&DefaultImports=java.util.*,net.servicestack.client.*',
    ]) {
      const folder = newFolder()
      const types = await save(folder, 'dtos.java', `${server.server.url}/types/java?${query}`)
      await run('javac', ['-Xlint:all', '-Werror', '-cp', library, '-d', folder, types], { timeout: 120_000 })
    }
  }, 180_000)
})

peerSuite(missing, 'net.servicestack:client 1.0.49 in Kotlin 2.1.21, with the types of /types/kotlin', () => {
  test('R6 A1 A9 O2 H1 signs in, assigns, unassigns, gets health, sends a heartbeat, and reads dates, durations and errors', async () => {
    const server = await startAccounts()
    onTestFinished(() => server.close())

    expect(await kotlin(server.server.url)).toMatchObject({ ...expected, 'sign-in': session })
  }, 300_000)
})
