import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { daemon } from '../suite/daemon.ts'
import { farMs } from '../suite/until.ts'
import { childrenOf, freezeTree, killAll, thawTree } from './process-tree.ts'

export type Daemon = {
  readonly log: () => string
  /** Processes that serve a connection. */
  readonly sessions: () => number
  /** SIGSTOP to it and those: its kernel accepts connections, and nothing answers. */
  readonly freeze: () => void
  readonly thaw: () => void
  /** Ends it and those. */
  readonly stop: () => Promise<void>
}

/** Starts a server under the test's own account, and waits until its port accepts connections. */
export async function startDaemon(program: string, args: readonly string[], port: number): Promise<Daemon> {
  const { log, pid, isRunning, stop } = await daemon([program, ...args], {
    ready: () => accepts(port),
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: '/',
    end: 'exit',
  })
  return {
    log,
    freeze: () => freezeTree(pid),
    thaw: () => thawTree(pid),
    sessions: () => (isRunning() ? childrenOf(pid).length : 0),
    stop: async () => {
      if (!isRunning()) return
      killAll(childrenOf(pid))
      await stop('SIGKILL')
    },
  }
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })

/** Resolves with the sessions that are left, as soon as there are none, or after `farMs`. */
export async function sessionsLeft(daemon: { readonly sessions: () => number }): Promise<number> {
  const ends = performance.now() + farMs
  while (performance.now() < ends && daemon.sessions() > 0) await wait(50)
  return daemon.sessions()
}
