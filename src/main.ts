import { endOnUncaught, guardStandardError, outputUsed, packageJson, writeOutput } from './cli/process.ts'
import { commands, topics } from './registry.ts'

// oclif detects the shell when it loads, and on Windows starts PowerShell for that.
process.env.SHELL ??= process.env.COMSPEC ?? 'unknown'

/**
 * Runs one command line and sets the process's exit code. It does not exit by itself, because that would truncate a
 * piped answer at 64 KiB. Only uncaught errors end in an exit.
 */
export async function main(argv: readonly string[]): Promise<void> {
  endOnUncaught(async (error) => {
    const { settle } = await import('./cli/exit.ts')
    // Standard output contains one JSON value: after an answer, no error follows.
    await settle(error, { json: argv.includes('--json') && !outputUsed(), debug: argv.includes('--debug') })
  })
  const first = argv[0] ?? ''
  if (first === '--version' || first === '-V') {
    writeOutput(`svc ${packageJson().version}\n`)
    return
  }
  guardStandardError()
  if (first === '__complete') {
    const { printCompletions } = await import('./cli/completion/complete.ts')
    await printCompletions(argv.slice(1), { commands, topics })
    return
  }
  const command = findCommand(argv)
  if (command && !wantsHelp(command.rest)) {
    if (command.id === 'serve') await widenThreadPool()
    const { runCommand } = await import('./cli/base.ts')
    await runCommand(commands[command.id] as (typeof commands)[string], command.rest, command.id)
    return
  }
  const { showHelp } = await import('./cli/help.ts')
  await showHelp(argv, command?.id, { commands, topics })
}

/**
 * Lets password hashes use all but two of libuv's threads (P3). The pool reads its size at first use, so this must run
 * before any file is read.
 */
async function widenThreadPool(): Promise<void> {
  const { availableParallelism } = await import('node:os')
  process.env.UV_THREADPOOL_SIZE ??= String(availableParallelism() + 2)
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

function wantsHelp(rest: readonly string[]): boolean {
  const end = rest.indexOf('--')
  return (end === -1 ? rest : rest.slice(0, end)).some((word) => word === '--help' || word === '-h')
}
