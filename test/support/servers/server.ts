import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Daemon, daemon } from '../suite/daemon.ts'
import { freezeTree, thawTree } from './process-tree.ts'

/** Database servers refuse to run as root: then they run as the account nobody, which owns their folder. */
const nobody = 65_534
export const asServer = process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {}

/** A fresh folder that the server's account owns and others may pass through. */
export function serverFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `svc-${name}-`))
  chmodSync(folder, 0o755)
  if (asServer.uid !== undefined) chownSync(folder, asServer.uid, asServer.gid)
  return folder
}

/** Where a program of the operating system is: in the folders of servers, which PATH may leave out, or on PATH. */
export const findProgram = (name: string): string | undefined =>
  ['/usr/sbin', '/usr/bin', '/usr/local/sbin', '/usr/local/bin', ...(process.env.PATH ?? '').split(':')]
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path))

/** Those below the ports that Linux and others give to connections and to who listens on 0. */
const lowPorts = { from: 20_000, to: 32_000 }

/** A free port that nothing gets by chance while its server is down, such as the connection of somebody else. */
export async function lastingPort(): Promise<number> {
  for (;;) {
    const port = await portOf(lowPorts.from + Math.floor(Math.random() * (lowPorts.to - lowPorts.from))).catch(
      () => undefined,
    )
    if (port !== undefined) return port
  }
}

export const freePort = (): Promise<number> => portOf(0)

async function portOf(port: number): Promise<number> {
  const server = createServer().listen(port, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

export type Running = Pick<Daemon, 'pid' | 'log'> & {
  /** SIGSTOP to it and all its children: it accepts connections by its kernel, and never answers. */
  readonly freeze: () => void
  readonly thaw: () => void
  /** Ends it, with SIGINT unless told otherwise. */
  readonly stop: (signal?: NodeJS.Signals) => Promise<void>
}

/** A server that has not said so by then does not start. RabbitMQ takes 40 s where others keep the processors busy. */
const startMs = 150_000

/** Starts a server and waits until its log says `ready`. */
export async function run(program: string, args: readonly string[], ready: RegExp): Promise<Running> {
  const { pid, log, isRunning, stop } = await daemon([program, ...args], {
    ready: (text) => ready.test(text),
    maxMs: startMs,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...asServer,
    cwd: '/',
    end: 'exit',
  })
  return {
    pid,
    log,
    freeze: () => freezeTree(pid),
    thaw: () => {
      if (isRunning()) thawTree(pid)
    },
    stop: async (signal = 'SIGINT') => void (await stop(signal)),
  }
}

export const remove = (folder: string): void => rmSync(folder, { recursive: true, force: true })
