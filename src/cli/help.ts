import type { Interfaces } from '@oclif/core'
import type { Command } from '@oclif/core/command'
import { Help } from '@oclif/core/help'
import { Fault } from '../core/errors.ts'
import { didYouMean } from '../core/suggest.ts'
import type { CommandClass } from './base.ts'
import { settle } from './exit.ts'
import { helpTopics } from './help-topics.ts'
import { writeOutput } from './standard-streams.ts'
import { StaticConfig } from './static-config.ts'

type Registry = {
  readonly commands: Readonly<Record<string, () => Promise<{ readonly default: CommandClass }>>>
  readonly topics: Readonly<Record<string, string>>
}

/** oclif's help over our own table of commands: no manifest, no look around the disk. */
class HelpConfig extends StaticConfig {
  readonly #commands: readonly Command.Loadable[]
  readonly #topics: Interfaces.Topic[]
  constructor(loaded: readonly Command.Loadable[], topicTable: Registry['topics']) {
    super()
    this.#commands = loaded
    // oclif shows a topic only when another "topic" lies below it, and counts commands as such.
    this.#topics = [
      ...Object.entries(topicTable).map(([name, description]) => ({ name, description })),
      ...loaded.map((command) => ({ name: command.id, description: command.summary ?? '' })),
    ]
  }
  override get commands(): Command.Loadable[] {
    return [...this.#commands]
  }
  override get commandIDs(): string[] {
    return this.#commands.map((command) => command.id)
  }
  override get topics(): Interfaces.Topic[] {
    return this.#topics
  }
  override findCommand(id: string): Command.Loadable
  override findCommand(id: string): Command.Loadable | undefined {
    return this.#commands.find((command) => command.id === id)
  }
  override findTopic(name: string): Interfaces.Topic
  override findTopic(name: string): Interfaces.Topic | undefined {
    return this.#topics.find((topic) => topic.name === name && !this.commandIDs.includes(name))
  }
}

/** oclif's own way to standard output ignores every error. */
class SvcHelp extends Help {
  protected override log(...lines: string[]): void {
    writeOutput(`${lines.join(' ')}\n`)
  }
}

/** Help for everything, a topic, a command or a subject; an unknown word is a usage fault. */
export async function showHelp(
  argv: readonly string[],
  commandId: string | undefined,
  registry: Registry,
): Promise<void> {
  const words = argv.filter((word) => word !== 'help' && !word.startsWith('-'))
  const asked = commandId ?? words.join(':')
  const subject = argv[0] === 'help' && words.length === 1 ? helpTopics[words[0] ?? ''] : undefined
  if (subject) {
    writeOutput(`${subject.text()}\n`)
    return
  }
  if (asked !== '' && !Object.hasOwn(registry.commands, asked) && !Object.hasOwn(registry.topics, asked)) {
    await settle(unknownCommand(argv, words, registry), { json: argv.includes('--json'), debug: false })
    return
  }
  const loaded = await Promise.all(Object.entries(registry.commands).map(([id, load]) => loadable(id, load)))
  const help = new SvcHelp(new HelpConfig(loaded, registry.topics), {
    maxWidth: Math.min(process.stdout.columns ?? 100, 120),
  })
  await help.showHelp(asked === '' ? [] : [asked])
  if (asked === '') writeOutput(`SUBJECTS\n  svc help ${Object.keys(helpTopics).join(' | ')}\n`)
}

async function loadable(
  id: string,
  load: () => Promise<{ readonly default: CommandClass }>,
): Promise<Command.Loadable> {
  const { default: Class } = await load()
  const command = Class as unknown as Command.Class
  return {
    id,
    summary: command.summary,
    description: command.description,
    examples: command.examples,
    args: command.args,
    flags: { ...command.flags, ...command.baseFlags },
    strict: command.strict,
    hidden: command.hidden,
    aliases: [],
    hiddenAliases: [],
    hasDynamicHelp: false,
    load: async () => command,
  } as unknown as Command.Loadable
}

function unknownCommand(argv: readonly string[], words: readonly string[], registry: Registry): Fault {
  if (words.length === 0)
    return new Fault('Usage', `unknown flag ${argv[0]}`, { hints: ['svc help shows the commands.'] })
  const known = [...Object.keys(registry.commands), ...Object.keys(registry.topics)].map((id) =>
    id.replaceAll(':', ' '),
  )
  const said = words.join(' ')
  const nearest = didYouMean(said, known) ?? didYouMean(words[0] ?? '', known)
  return new Fault('Usage', `unknown command "${said}"`, {
    hints: [...(nearest ? [`Did you mean svc ${nearest}?`] : []), 'svc help shows the commands.'],
  })
}
