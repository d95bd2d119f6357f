import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { compiledCode } from '../support/program/compiled-code.ts'
import { unwatched } from '../support/program/unwatched.ts'
import { freePort } from '../support/servers/server.ts'
import type { Secrets } from './secrets.ts'
import { ServeLog } from './serve-log.ts'
import { makeAccounts, renewed } from './signed-in.ts'

/** The resources of a process. Bytes, except `sockets` and `files`, which are undefined where they cannot be counted. */
export type ProcessResources = {
  readonly rss: number
  readonly heapUsed: number
  readonly external: number
  readonly sockets: number
  readonly files: number | undefined
}

/**
 * A separate `svc serve`: Ann is Admin, Ned has no role, Hal reports heartbeats, and the requests do not know the password
 * of Root.
 */
export type CheckContext = {
  readonly port: number
  readonly log: ServeLog
  readonly secrets: Secrets
  /** Texts of which no answer may hold one: where its files lie. */
  readonly folders: readonly string[]
  readonly running: () => boolean
  /** Gives Ann and Ned their roles back, and new sessions in place of those that were ended. */
  readonly renew: () => Promise<void>
  /** Measures the resources that it holds after everything that can be freed is free. */
  readonly measure: () => Promise<ProcessResources>
  /** SIGTERM; gives the exit code. */
  readonly stop: () => Promise<number | null>
  readonly remove: () => Promise<void>
}

const program = new URL('../../bin/dev.js', import.meta.url).pathname
const watched = new URL('./watched.ts', import.meta.url).href

export async function startFixture(): Promise<CheckContext> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-prove-'))
  const store = join(folder, 'store', 'svc.db')
  const peer = createServer((socket) => socket.on('error', () => {}).end('hello\r\n')).listen(0, '127.0.0.1')
  await once(peer, 'listening')
  const secrets = await makeAccounts(store)
  writeFileSync(
    join(folder, 'svc.yaml'),
    unwatched(configuration((peer.address() as { port: number }).port, await freePort(), folder)),
    { mode: 0o600 },
  )
  const portFile = join(folder, 'port')
  const child = spawn(
    process.execPath,
    ['--expose-gc', '--import', watched, program, 'serve', '--port', '0', '--port-file', portFile, '--store', store],
    {
      env: { PATH: process.env.PATH ?? '', HOME: folder, SVC_HOME: folder, ...compiledCode },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    },
  )
  const log = new ServeLog()
  if (child.stderr) createInterface({ input: child.stderr }).on('line', (line) => log.take(line))
  const running = (): boolean => child.exitCode === null && child.signalCode === null
  const remove = async (): Promise<void> => {
    if (running()) await ended(child, 'SIGKILL')
    await new Promise((resolve) => peer.close(resolve))
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    for (let i = 0; i < 600 && running() && !existsSync(portFile); i += 1) await sleep(50)
    const port = Number(existsSync(portFile) ? readFileSync(portFile, 'utf8') : '')
    if (!port) throw new Error(`svc serve did not start: ${log.tail()}`)
    const renew = (): Promise<void> => renewed(port, secrets)
    await renew()
    return {
      port,
      log,
      secrets,
      folders: [folder],
      running,
      renew,
      measure: () => measured(child),
      stop: () => ended(child, 'SIGTERM'),
      remove,
    }
  } catch (error) {
    await remove()
    throw error
  }
}

const configuration = (open: number, closed: number, folder: string): string => `
types:
  Sql:
    - {kind: tcp, name: database, host: 127.0.0.1, port: ${open}}
    - {kind: file-age, name: backup, path: ${folder}/svc.yaml, depth: Standard}
  Ftp:
    - {kind: tcp, name: ftp, host: 127.0.0.1, port: ${closed}}
  Qc:
    - {kind: tcp, name: licence, host: 127.0.0.1, port: ${closed}, deployment: true}
  Agents:
    - {kind: heartbeat, name: agents}
`

async function measured(child: ChildProcess): Promise<ProcessResources> {
  const answer = once(child, 'message')
  child.send('measure')
  const [holdings] = (await answer) as [Omit<ProcessResources, 'files'>]
  return { ...holdings, files: files(child.pid) }
}

function files(pid: number | undefined): number | undefined {
  try {
    return readdirSync(`/proc/${pid}/fd`).length
  } catch {
    return undefined
  }
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  const exit = once(child, 'exit')
  const timer = setTimeout(() => child.kill('SIGKILL'), 15_000)
  child.kill(signal)
  await exit
  clearTimeout(timer)
  return child.exitCode
}
