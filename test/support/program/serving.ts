import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Daemon, type DaemonOptions, daemon } from '../suite/daemon.ts'
import { entry } from './svc.ts'

/** A real `svc serve` in a process of its own. */
export type Serving = Daemon & { readonly port: number; readonly url: string }

export type ServingOptions = Omit<DaemonOptions, 'ready'> & {
  /** Where it writes its port. */
  readonly folder: string
  /** Absent: a free one. */
  readonly port?: number | undefined
  /** Options of Node. */
  readonly node?: readonly string[]
  /** Absent: the built program. */
  readonly program?: string | undefined
  /** The command that runs a command elsewhere, as in mounts of its own. */
  readonly within?: ((command: readonly string[]) => readonly string[]) | undefined
}

/** Starts `svc serve` with these arguments, and waits until it listens. */
export async function serving(
  args: readonly string[],
  { folder, port: at = 0, node = [], program = entry, within = (command) => command, ...how }: ServingOptions,
): Promise<Serving> {
  const portFile = join(folder, 'port')
  rmSync(portFile, { force: true })
  const written = (): string => (existsSync(portFile) ? readFileSync(portFile, 'utf8').trim() : '')
  const serve = ['serve', '--port', String(at), '--port-file', portFile, ...args]
  const command = within([process.execPath, ...node, program, ...serve])
  const started = await daemon(command, { name: 'svc serve', ...how, ready: () => written() !== '' })
  const port = Number(written())
  return { ...started, port, url: `http://127.0.0.1:${port}` }
}
