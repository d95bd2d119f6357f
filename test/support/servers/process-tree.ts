import { readdirSync, readFileSync } from 'node:fs'

/** A busy machine stops a process later, but never by so much. Milliseconds. */
const patienceMs = 10_000

/**
 * Waits until processes to which SIGSTOP was sent have stopped. The signal only asks for it: until the kernel has stopped
 * every thread, a server still answers. Does not return to the event loop, so that nothing is sent meanwhile.
 */
export function untilStopped(pids: readonly number[]): void {
  const end = performance.now() + patienceMs
  while (pids.some(isRunning)) {
    if (performance.now() > end) throw new Error(`not stopped after ${patienceMs / 1_000} s: ${pids.filter(isRunning)}`)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
  }
}

/** SIGSTOP to a server and its children: the kernel accepts connections for them, and nothing answers. */
export function freezeTree(pid: number): void {
  untilStopped(signalTree(pid, 'SIGSTOP'))
}

export const thawTree = (pid: number): void => void signalTree(pid, 'SIGCONT')

function signalTree(pid: number, signal: NodeJS.Signals): readonly number[] {
  const all = [pid, ...childrenOf(pid)]
  for (const one of all) {
    try {
      process.kill(one, signal)
    } catch (error) {
      // A child that serves a connection may have ended meanwhile; the server itself must be there.
      if (one === pid) throw error
    }
  }
  return all
}

function isRunning(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).some((thread) => {
      const status = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1')
      // The name in front of the state may contain anything.
      return !'TtZX'.includes(status.slice(status.lastIndexOf(')') + 2)[0] ?? '')
    })
  } catch {
    // It has ended.
    return false
  }
}

export function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text
    .split(' ')
    .filter((one) => one !== '')
    .map(Number)
}

/** All descendants of a process that are still there. */
export function descendantsOf(pid: number): number[] {
  try {
    return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)])
  } catch {
    return []
  }
}

/** SIGKILL to each; one that has ended meanwhile is left aside. */
export function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}
