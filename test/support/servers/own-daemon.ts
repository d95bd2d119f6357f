import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { farMs } from '../suite/until.ts'
import { childrenOf, freezeTree, thawTree } from './process-tree.ts'

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
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd: '/' })
  let log = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      log += String(chunk)
    })
  }
  const { pid } = child
  if (pid === undefined) throw new Error(`${program} cannot be started`)
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  child.once('exit', () => process.off('exit', kill))
  const ended = (): boolean => child.exitCode !== null || child.signalCode !== null
  for (let round = 0; !(await accepts(port)); round += 1) {
    if (ended() || round > 400) {
      kill()
      throw new Error(`${program} does not listen: ${log}`)
    }
    await wait(50)
  }
  return {
    log: () => log,
    freeze: () => freezeTree(pid),
    thaw: () => thawTree(pid),
    sessions: () => (ended() ? 0 : childrenOf(pid).length),
    stop: async () => {
      if (ended()) return
      const gone = once(child, 'exit')
      for (const one of childrenOf(pid)) {
        try {
          process.kill(one, 'SIGKILL')
        } catch {
          // It ended by itself in between.
        }
      }
      kill()
      await gone
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
