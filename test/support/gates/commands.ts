import { main } from '../../../src/main.ts'
import { capturedIo } from '../program/captured-io.ts'
import { farMs } from '../suite/until.ts'

/** A command line after `svc health`, and the variables besides those that every command has. */
export type GateCommand = { readonly argv: readonly string[]; readonly env: Readonly<Record<string, string>> }
/** The exit code, and what the command wrote to standard output, and to both streams. */
export type GateResult = { readonly code: number; readonly stdout: string; readonly text: string }

/** Runs `main` in this process. Rejects for a command that does not end. */
export async function runGate({ argv, env }: GateCommand): Promise<GateResult> {
  const { PATH = '' } = process.env
  const captured = capturedIo({ env: { PATH, HOME: env['SVC_HOME'], NO_COLOR: '1', TERM: 'xterm', ...env } })
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => late.reject(new Error(`svc health ${argv.join(' ')} does not end: ${captured.stderr()}`)),
    farMs,
  )
  try {
    await Promise.race([main(captured.io, ['health', ...argv]), late.promise])
  } finally {
    clearTimeout(timer)
    captured.signal('SIGTERM')
  }
  const stdout = captured.stdout()
  return { code: captured.io.exitCode ?? 0, stdout, text: captured.stderr() + stdout }
}
