import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { constants } from 'node:os'

/** The exit code of a program as shells report it: 128 plus the signal's number if a signal ended it. */
export const exitCodeOf = (code: number | null, signal: NodeJS.Signals | null): number =>
  signal === null ? (code ?? 1) : 128 + constants.signals[signal]

/**
 * Leaves signals to a program that this process runs, until the returned function is called. A terminal sends ctrl-C to
 * both processes; it is meant for the program, however often it comes. All other signals are passed on.
 */
export function leaveSignalsTo(child: ChildProcess): () => void {
  const earlier = (['SIGINT', 'SIGTERM'] as const).map((name) => [name, process.listeners(name)] as const)
  for (const [name] of earlier) process.removeAllListeners(name)
  const pass = (signal: NodeJS.Signals): void => void child.kill(signal)
  const onInterrupt = hasTerminal() ? (): void => {} : pass
  process.on('SIGINT', onInterrupt)
  process.on('SIGTERM', pass)
  process.on('SIGHUP', pass)
  return () => {
    process.off('SIGINT', onInterrupt)
    process.off('SIGTERM', pass)
    process.off('SIGHUP', pass)
    for (const [name, listeners] of earlier) for (const listener of listeners) process.on(name, listener as () => void)
  }
}

/** Whether this process belongs to a terminal, whatever its streams are. */
function hasTerminal(): boolean {
  if (process.platform === 'win32') return true
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}
