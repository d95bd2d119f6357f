import type { CommandClass } from './base.ts'
import { settle } from './exit.ts'
import { StaticConfig } from './static-config.ts'

/** Runs a command that is known by its id. */
export async function runCommand(
  id: string,
  load: () => Promise<{ readonly default: CommandClass }>,
  argv: readonly string[],
): Promise<void> {
  try {
    const { default: Command } = await load()
    Command.id = id
    await new Command([...argv], new StaticConfig()).start()
  } catch (error) {
    await settle(error, { json: argv.includes('--json'), debug: argv.includes('--debug') })
  }
}
