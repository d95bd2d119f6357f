import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { constants } from 'node:os'
import type { Io, ProcessEnvironment, Signals } from './io.ts'
import { machine } from './process.ts'

/** The exit code of a program as shells report it: 128 plus the signal's number if a signal ended it. */
export const exitCodeOf = (code: number | null, signal: NodeJS.Signals | null): number =>
  signal === null ? (code ?? 1) : 128 + constants.signals[signal]

/**
 * Starts a program on the streams of a command line, which it inherits where they are those of a process. `own` replaces
 * some of them.
 */
export function spawnOn(
  { stdin, stdout, stderr }: Pick<Io, 'stdin' | 'stdout' | 'stderr'>,
  [program = '', ...args]: readonly string[],
  env: ProcessEnvironment,
  own: { readonly stdin?: 'ignore'; readonly output?: 'pipe' } = {},
): ChildProcess {
  const stdio = [
    own.stdin ?? stdin.descriptor ?? 'pipe',
    own.output ?? stdout.descriptor ?? 'pipe',
    own.output ?? stderr.descriptor ?? 'pipe',
  ] satisfies SpawnOptions['stdio']
  const child = spawn(program, args, { stdio, env: { ...env } })
  // The program may end before it has read everything.
  if (child.stdin) stdin.stream.pipe(child.stdin).on('error', () => {})
  if (own.output === undefined) {
    child.stdout?.on('data', (part: Buffer) => stdout.write(part))
    child.stderr?.on('data', (part: Buffer) => stderr.write(part))
  }
  return child
}

/**
 * Leaves signals to a program that this process runs, until the returned function is called. A terminal sends ctrl-C to
 * both processes; it is meant for the program, however often it comes. All other signals are passed on.
 */
export function leaveSignalsTo(child: ChildProcess, signals: Signals): () => void {
  const isSentByTerminal = hasTerminal()
  return signals.take(['SIGINT', 'SIGTERM', 'SIGHUP'], (name) => {
    if (name !== 'SIGINT' || !isSentByTerminal) child.kill(name)
  })
}

/** Whether this process belongs to a terminal, whatever its streams are. */
function hasTerminal(): boolean {
  if (machine.platform === 'win32') return true
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}
