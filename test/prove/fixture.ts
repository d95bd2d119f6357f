import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { compiledCode } from '../support/program/compiled-code.ts'
import { serving } from '../support/program/serving.ts'
import { unwatched } from '../support/program/unwatched.ts'
import { freePort } from '../support/servers/server.ts'
import type { Ending } from '../support/suite/daemon.ts'
import type { Secrets } from './secrets.ts'
import { ServeLog } from './serve-log.ts'
import { makeRoot, renewed } from './signed-in.ts'

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
  /** Adds Ann, Ned, Lou and Hal anew, with new keys and sessions. Nothing may be asked meanwhile. */
  readonly renew: () => Promise<void>
  /** Measures the resources that it holds after everything that can be freed is free. */
  readonly measure: () => Promise<ProcessResources>
  /** SIGTERM; gives the exit code. */
  readonly stop: () => Promise<Ending>
  readonly remove: () => Promise<void>
}

const program = new URL('../../bin/dev.js', import.meta.url).pathname
const watched = new URL('./watched.ts', import.meta.url).href

export async function startFixture(): Promise<CheckContext> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-prove-'))
  const store = join(folder, 'store', 'svc.db')
  const peer = createServer((socket) => socket.on('error', () => {}).end('hello\r\n')).listen(0, '127.0.0.1')
  await once(peer, 'listening')
  const secrets = await makeRoot(store)
  writeFileSync(
    join(folder, 'svc.yaml'),
    unwatched(configuration((peer.address() as { port: number }).port, await freePort(), folder)),
    { mode: 0o600 },
  )
  const serve = await serving(['--store', store], {
    folder,
    node: ['--expose-gc', '--import', watched],
    program,
    env: { PATH: process.env.PATH ?? '', HOME: folder, SVC_HOME: folder, ...compiledCode },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    unread: true,
  })
  const log = new ServeLog()
  createInterface({ input: serve.child.stderr as Readable }).on('line', (line) => log.take(line))
  const remove = async (): Promise<void> => {
    await serve.stop('SIGKILL')
    await new Promise((resolve) => peer.close(resolve))
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const renew = (): Promise<void> => renewed(serve.port, secrets)
    await renew()
    return {
      port: serve.port,
      log,
      secrets,
      folders: [folder],
      running: serve.isRunning,
      renew,
      measure: async () => ({ ...(await serve.ask<ProcessResources>('measure')), files: files(serve.pid) }),
      stop: serve.stop,
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

function files(pid: number | undefined): number | undefined {
  try {
    return readdirSync(`/proc/${pid}/fd`).length
  } catch {
    return undefined
  }
}
