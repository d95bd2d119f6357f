import type { Io } from './cli/io/io.ts'
import { packageJson } from './cli/io/process.ts'
import { colourOf } from './cli/io/terminal.ts'
import { commands, topics } from './registry.ts'

export { processIo } from './cli/io/process.ts'

/**
 * Runs one command line and sets the exit code of `io`. It does not end the process, because that would truncate a piped
 * answer at 64 KiB: only uncaught errors do. It leaves nothing behind in the process, so it can run again.
 */
export async function main(io: Io, argv: readonly string[]): Promise<void> {
  io.colour = colourOf(argv)
  io.reportUncaught = async (error) => {
    const { settle } = await import('./cli/command/exit.ts')
    // Standard output contains one JSON value: after an answer, no error follows.
    const json = argv.includes('--json') && !io.stdout.used
    await settle(error, { json, debug: argv.includes('--debug') }, io)
  }
  io.exitCodeOfLostOutput = undefined
  io.reportLostOutput = async (error) => (await import('./cli/command/exit.ts')).reportLostOutput(error, io)
  const first = argv[0] ?? ''
  if (first === '--version' || first === '-V') {
    io.stdout.write(`svc ${packageJson().version}\n`)
    return
  }
  if (first === '__complete') {
    const { printCompletions } = await import('./cli/help/completion/complete.ts')
    await printCompletions(argv.slice(1), { commands, topics }, io)
    return
  }
  const command = findCommand(argv)
  if (command && !isHelpRequested(command.rest)) {
    if (command.id === 'serve') await widenThreadPool(io)
    const { runCommand } = await import('./cli/command/base.ts')
    await runCommand(commands[command.id] as (typeof commands)[string], command.rest, io, command.id)
    return
  }
  const { showHelp } = await import('./cli/help/help.ts')
  await showHelp(argv, command?.id, { commands, topics }, io)
}

/**
 * Lets password hashes use all but two of libuv's threads (P3). The pool reads its size at first use, so this must run
 * before any file is read.
 */
async function widenThreadPool(io: Io): Promise<void> {
  const { availableParallelism } = await import('node:os')
  io.reserveThreads(availableParallelism() + 2)
}

/** `monitors list -t Sql` → `monitors:list` and the rest: the longest known id wins. */
function findCommand(argv: readonly string[]): { readonly id: string; readonly rest: readonly string[] } | undefined {
  for (const words of [2, 1]) {
    const head = argv.slice(0, words)
    if (head.length < words || head.some((word) => word.startsWith('-'))) continue
    const id = head.join(':')
    if (Object.hasOwn(commands, id)) return { id, rest: argv.slice(words) }
  }
  return undefined
}

function isHelpRequested(rest: readonly string[]): boolean {
  const end = rest.indexOf('--')
  return (end === -1 ? rest : rest.slice(0, end)).some((word) => word === '--help' || word === '-h')
}
