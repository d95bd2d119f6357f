import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { serverLimits } from '../../../src/core/server/limits.ts'
import {
  callerAddresses,
  credential,
  type ProgramAnswer,
  type ProgramRow,
  programPlaces,
  programRows,
} from './places.ts'

/** Runs the built program, as a client and as a server. For the namespace of `network.ts`. */
const folder = mkdtempSync(join(tmpdir(), 'svc-program-'))
const binary = new URL('../../../bin/run.js', import.meta.url).pathname

/** Programs that this script has started: none outlives it, whatever ends it. */
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})
process.once('SIGTERM', () => process.exit(1))

function start(args: readonly string[], home: string, stdin = '', more: Readonly<Record<string, string>> = {}) {
  const env = { PATH: process.env.PATH ?? '', HOME: home, SVC_HOME: join(home, 'svc'), NO_COLOR: '1', ...more }
  const child = spawn(process.execPath, [binary, ...args], { env, stdio: 'pipe' })
  running.add(child)
  child.once('close', () => running.delete(child))
  child.stdin.on('error', () => {})
  child.stdin.end(stdin)
  const exit = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { child, exit }
}

async function client(row: ProgramRow, place: (typeof programPlaces)[number], index: number) {
  const chunks: Buffer[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (chunk) => chunks.push(chunk))
    row.entice(socket, 0)
  }).listen(0, place.listens)
  await once(server, 'listening')
  const home = mkdtempSync(join(folder, `home-${index}-`))
  const { port } = server.address() as AddressInfo
  const { exit } = start(row.args(place.host, port), home, row.stdin, row.env)
  const [, stderr] = await exit
  for (const socket of sockets) socket.destroy()
  server.close()
  return { row: row.name, place: place.host, received: credential.isIn(Buffer.concat(chunks)), stderr }
}

type Endpoint = { readonly address: string; readonly port: number }
const headers = { host: hostname(), accept: 'application/json', 'content-type': 'application/json' }

async function ask(
  { address, port }: Endpoint,
  path: string,
  body?: string,
): Promise<{ status: number; text: string }> {
  const call = request({
    host: address,
    port,
    path,
    method: body === undefined ? 'GET' : 'POST',
    headers,
    agent: false,
  })
  call.end(body)
  const [response] = (await once(call, 'response')) as [IncomingMessage]
  return { status: response.statusCode ?? 0, text: await text(response) }
}

/** The full view names the versions of svc and of Node; the brief one has no messages (S11). */
async function viewFrom(endpoint: Endpoint): Promise<'full' | 'brief'> {
  const answer = await ask(endpoint, '/healthcheck?ExecutionMode=Basic&ServerType=App&SuppressErrorCodes=true')
  return answer.text.includes(' on Node ') ? 'full' : 'brief'
}

/** The status of a sign-in after thirty failures. */
async function signInFrom(endpoint: Endpoint): Promise<number> {
  let status = 0
  for (let n = 0; n <= 30; n += 1) {
    const body = JSON.stringify({ provider: 'credentials', UserName: `name-${n}`, Password: 'wrong-horse-9' })
    status = (await ask(endpoint, '/auth', body)).status
  }
  return status
}

/** How many of `count` connections at once the server answers; it closes the others. */
async function connectionsFrom({ address, port }: Endpoint, count: number): Promise<number> {
  const sockets = Array.from({ length: count }, () => connect(port, address))
  const results = await Promise.all(
    sockets.map(async (socket) => {
      socket.on('error', () => {})
      socket.write('GET /server-types HTTP/1.1\r\nHost: localhost\r\n\r\n')
      return await new Promise<boolean>((resolve) => {
        socket.once('data', () => resolve(true))
        socket.once('close', () => resolve(false))
      })
    }),
  )
  for (const socket of sockets) socket.destroy()
  return results.filter(Boolean).length
}

/** How a server on all addresses treats callers from each. */
async function callers(): Promise<ProgramAnswer['callers']> {
  const home = mkdtempSync(join(folder, 'callers-'))
  const [portFile, passwordFile] = [join(home, 'port'), join(home, 'password')]
  writeFileSync(passwordFile, credential.env.SVC_TEST_PASSWORD)
  const admin = ['--bootstrap-admin', 'ops', '--bootstrap-password-file', passwordFile]
  const store = ['--store', join(home, 'store', 'svc.db')]
  const where = ['--host', '::', '--port', '0', '--port-file', portFile, '--insecure-listen']
  const { child, exit } = start(['serve', ...where, ...store, ...admin], home)
  while (!existsSync(portFile) && child.exitCode === null) await pause(20)
  if (child.exitCode !== null) throw new Error((await exit)[1])
  const port = Number(readFileSync(portFile, 'utf8'))
  const result: Record<string, ProgramAnswer['callers'][string]> = {}
  for (const address of callerAddresses) {
    const endpoint = { address, port }
    result[address] = {
      view: await viewFrom(endpoint),
      signIn: await signInFrom(endpoint),
      connections: await connectionsFrom(endpoint, serverLimits.connectionsPerAddress + 8),
    }
  }
  child.kill('SIGTERM')
  await exit
  return result
}

async function serveAt(host: string): Promise<{ readonly code: number | null; readonly stderr: string }> {
  const home = mkdtempSync(join(folder, 'serve-'))
  const { child, exit } = start(['serve', '--host', host, '--port', '0', '--store', join(home, 'svc.db')], home)
  let log = ''
  let stopping = false
  child.stderr.on('data', (chunk) => {
    log += String(chunk)
    if (stopping || !log.includes('listens on')) return
    stopping = true
    child.kill('SIGTERM')
  })
  const [, stderr, [code]] = await exit
  return { code: code as number | null, stderr }
}

const clients = []
for (const row of programRows) {
  for (const [index, place] of programPlaces.entries()) clients.push(await client(row, place, index))
}
const answer: ProgramAnswer = {
  clients,
  callers: await callers(),
  serves: { elsewhere: await serveAt('elsewhere.localhost'), here: await serveAt('here.localhost') },
}
process.stdout.write(JSON.stringify(answer))
