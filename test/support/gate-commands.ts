import { fork } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fstatSync, ftruncateSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A command line after `svc health`, and the variables besides those that every command has. */
export type GateCommand = { readonly argv: readonly string[]; readonly env: Readonly<Record<string, string>> }
export type GateReport = { readonly code: number }
/** The exit code, and everything that the command wrote to standard output and standard error. */
export type GateResult = GateReport & { readonly text: string }

export type GateCommands = {
  /** One at a time. */
  readonly run: (command: GateCommand) => Promise<GateResult>
  readonly close: () => Promise<void>
}

/** Milliseconds for one command. */
const patienceMs = 20_000

/** A process that runs `svc health` from its sources, command after command. */
export function gateCommands(): GateCommands {
  const folder = mkdtempSync(join(tmpdir(), 'svc-gates-out-'))
  // Both streams append to one file, so that nothing has to wait for a reader.
  const output = openSync(join(folder, 'output'), 'a+')
  const child = fork(new URL('gate-commands-child.ts', import.meta.url), {
    execArgv: [],
    env: { PATH: process.env.PATH ?? '', HOME: folder, NO_COLOR: '1', TERM: 'xterm' },
    stdio: ['ignore', output, output, 'ipc'],
  })
  const end = once(child, 'exit').then(() => Promise.reject(new Error('the process ended')))
  // Whoever waits for a command gets this; between commands, nobody does.
  end.catch(() => {})
  const text = (): string => {
    const bytes = Buffer.alloc(fstatSync(output).size)
    readSync(output, bytes, 0, bytes.length, 0)
    ftruncateSync(output, 0)
    return bytes.toString()
  }
  return {
    run: async (command) => {
      const reply = once(child, 'message', { signal: AbortSignal.timeout(patienceMs) }) as Promise<[GateReport]>
      child.send(command)
      try {
        const [{ code }] = await Promise.race([reply, end])
        return { code, text: text() }
      } catch (error) {
        reply.catch(() => {})
        throw new Error(`svc health ${command.argv.join(' ')} did not end: ${text()}`, { cause: error })
      }
    },
    close: async () => {
      if (child.connected) child.disconnect()
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      closeSync(output)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
