import type { Interfaces } from '@oclif/core'
import type { Command } from '@oclif/core/command'
import { Config } from '@oclif/core/config'
import { Help } from '@oclif/core/help'
import { exits, Fault } from '../../core/base/errors.ts'
import { didYouMean } from '../../core/base/suggest.ts'
import { type CommandClass, globalFlags, listFlags } from '../command/base.ts'
import { settle } from '../command/exit.ts'
import { argumentLabel, connectionFlags, isRequired } from '../command/flags.ts'
import type { Io, ProcessEnvironment } from '../io/io.ts'
import { homeOf, machine, packageJson, packageRoot } from '../io/process.ts'
import { shellWord } from '../render/hints.ts'
import { wrap } from '../render/width.ts'
import { storeFlags } from '../session/admin.ts'
import type { CommandAnswer } from './records.ts'
import { type CommandNames, unknownCommand } from './unknown-command.ts'

type HelpTopic = {
  readonly summary: string
  readonly text: (registry: Pick<Registry, 'commands'>) => string | Promise<string>
}

/** The width of all help: that of the narrowest terminal in common use. */
const maxColumns = 80

/** Names and meanings in two columns, the meanings wrapped. */
const aligned = (
  rows: readonly (readonly [string, string])[],
  left = Math.max(...rows.map(([name]) => name.length)),
  columns = maxColumns,
): string => {
  return rows
    .flatMap(([name, meaning]) =>
      wrap(meaning, columns - left - 4).map((line, at) => `  ${(at === 0 ? name : '').padEnd(left)}  ${line}`),
    )
    .join('\n')
}

type Flag = Command.Flag.Any
const flagsOf = (flags: object): readonly (readonly [string, Flag])[] => Object.entries(flags)

/** The flags of `svc help flags`. The help of a command only names those of them that it takes. */
export const commonFlags = [
  {
    title: 'TARGET: the server or store that the command uses',
    flags: flagsOf(connectionFlags),
  },
  { title: 'OUTPUT', flags: flagsOf({ ...globalFlags, ...listFlags }) },
]
export const isCommon = (flag: Flag): boolean =>
  flag === (storeFlags.store as Flag) || commonFlags.some(({ flags }) => flags.some(([, one]) => one === flag))

export const flagLabel = (name: string, flag: Flag): string => {
  const value = flag.type === 'option' ? ` ${[flag.helpValue ?? '<value>'].flat().join(' ')}` : ''
  return `${flag.char === undefined ? '    ' : `-${flag.char}, `}--${name}${value}`
}

function flagsText(): string {
  const parts = commonFlags.map(
    ({ title, flags }) =>
      `${title}\n${aligned(flags.map(([name, flag]) => [flagLabel(name, flag), flag.description ?? ''] as const))}`,
  )
  return `COMMON FLAGS (svc COMMAND --help names those that a command takes)\n\n${parts.join('\n\n')}`
}

/** The records of lists, generated from their declarations. */
async function recordsText({ commands }: Pick<Registry, 'commands'>): Promise<string> {
  const { answersOf } = await import('./records.ts')
  const all = await answersOf(commands)
  const topic = ({ name }: CommandAnswer): string => name.split(' ')[0] ?? ''
  // One line stands for all commands of a topic with the same record: that of the list.
  const first = all
    .toSorted((a, b) => Number(b.isList) - Number(a.isList))
    .filter((one, at, sorted) => {
      const same = (other: CommandAnswer): boolean =>
        topic(other) === topic(one) && other.fields?.join() === one.fields?.join()
      return one.fields !== undefined && sorted.findIndex(same) === at
    })
  const rows = all
    .filter((one) => first.includes(one))
    .map(({ name, fields = [] }) => [name, fields.join(', ')] as const)
  return `LISTS of other commands: --output table, json or tsv; a table on a terminal
and tsv in a pipe unless one is requested. tsv has a line for each record, with
tabs between its fields, and a line of field names before them; --no-header
leaves it out
${aligned(rows)}`
}

/** Subjects of `svc help SUBJECT`. */
export const helpTopics: Readonly<Record<string, HelpTopic>> = {
  flags: { summary: 'The flags that most commands take', text: flagsText },
  'exit-codes': {
    summary: 'What every exit code means',
    text: () =>
      `EXIT CODES (frozen: scripts may rely on them)\n${aligned(
        Object.values(exits).map(({ code, meaning }) => [String(code), meaning] as const),
      )}

  Several types or servers: 0 if all are 0, 3 if any is 3, else the one code
  they share, else 10.
  --output nagios maps to 0 OK, 1 WARNING, 2 CRITICAL (3, 6, 7, 8), 3 UNKNOWN,
  which includes a lost answer; --nagios-timeout unknown maps 7 to UNKNOWN.`,
  },
  environment: {
    summary: 'Variables that svc reads',
    text: () =>
      `ENVIRONMENT (flags take precedence; a variable must not be empty)\n${aligned([
        ['SVC_SERVER', "URL of the server; default: the profile's server, or this machine"],
        ['SVC_PROFILE', 'the profile to use; SVC_SERVER takes precedence'],
        [
          'SVC_TOKEN',
          'a token or key for the server that the command line or SVC_SERVER names; never stored or renewed',
        ],
        ['SVC_CONFIG', 'the svc.yaml to use'],
        ['SVC_REQUIRE_CONFIG', '1: without a configuration, svc health exits with 12, and svc serve answers 503'],
        ['SVC_HOME', 'one folder for settings, store and state (containers, tests)'],
        ['SVC_STORE', "the embedded store's file, or postgres://user@host/db"],
        ['SVC_STORE_PASSWORD_FILE', "file with the database's password"],
        ['SVC_CA_FILE', 'PEM file of a private certificate authority'],
        ['HTTPS_PROXY, HTTP_PROXY, NO_PROXY', 'the proxy for servers'],
        ['SVC_PAGER, PAGER', 'the pager for what is longer than the screen (default less); empty or cat: none'],
        ['NO_COLOR, FORCE_COLOR, TERM=dumb', 'color off, on, off'],
        ['ACCESSIBLE', '1: static lines instead of animations'],
      ])}`,
  },
  formatting: {
    summary: 'Output formats',
    text: async (registry) =>
      `FORMATS of svc health --output\n${aligned([
        ['table', 'for people, and the default, in a pipe too (120 columns)'],
        ['json', 'the protocol\'s own document; several types: {"Results": [...]}; errors: {"error": {...}}'],
        ...(await reportLines()),
      ])}

  If the exit code is not 0, svc health also writes what failed and the verdict
  to standard error, except with nagios, prtg, github and -q.\n\n${await recordsText(registry)}`,
  },
  security: {
    summary: 'Where secrets are stored, and who has access',
    text: () =>
      `SECURITY
${aligned([
  ['Passwords', 'entered at a prompt or read from --password-stdin; never in an argument, a URL or a log line'],
  ['Tokens', 'in the OS keychain; SVC_TOKEN for CI; a 0600 file only with --insecure-storage'],
  ['Monitors', 'secrets in svc.yaml are {env: NAME}, {file: path} or {keychain: name}; a plain one is refused'],
  ['svc.yaml', 'never searched for in the working directory; refused if other accounts can write it'],
  ['The store', 'every account that can open it is Admin on this machine; others sign in at svc serve'],
  ['svc serve', 'listens on loopback without TLS; beyond that it requires TLS, an Admin and the allowed host names'],
  ['Health', 'beyond loopback, callers without sign-in see states and fault classes only'],
  ['Certificates', 'always verified; --ca-file adds a private authority'],
])}`,
  },
}

/** The report formats of `--output`; those with the same explanation share a line. */
async function reportLines(): Promise<readonly (readonly [string, string])[]> {
  const { reports } = await import('../../core/checks/reports/index.ts')
  const rowsByHelp = Map.groupBy(Object.entries(reports), ([, { help }]) => help)
  return [...rowsByHelp].flatMap(([help, rows]) =>
    help === undefined ? [] : [[rows.map(([name]) => name).join(', '), help]],
  )
}

export type Registry = {
  readonly commands: Readonly<Record<string, () => Promise<CommandClass>>>
  readonly topics: Readonly<Record<string, string>>
}

/** oclif's Config without disk access: svc has no plugins, manifest or user settings of oclif. */
class StaticConfig extends Config {
  constructor(env: ProcessEnvironment) {
    const pjson = packageJson() as unknown as Interfaces.PJSON
    super({ root: packageRoot(), pjson })
    this.pjson = pjson
    this.root = packageRoot()
    this.name = pjson.name
    this.version = pjson.version
    this.bin = 'svc'
    this.dirname = 'svc'
    this.topicSeparator = ' '
    this.platform = machine.platform as Interfaces.PlatformTypes
    this.windows = machine.platform === 'win32'
    this.home = homeOf(env)
    this.shell = 'unknown'
    this.arch = machine.arch as Interfaces.ArchTypes
    this.userAgent = `svc ${pjson.version}`
    this.valid = true
  }

  /** Without plugins there are no hooks; oclif's own method needs a root plugin. */
  override async runHook<T extends keyof Interfaces.Hooks>(): Promise<
    Interfaces.Hook.Result<Interfaces.Hooks[T]['return']>
  > {
    return { successes: [], failures: [] }
  }
}

/** oclif's help for our own table of commands, without a manifest or disk access. */
class HelpConfig extends StaticConfig {
  readonly #commands: readonly Command.Loadable[]
  readonly #topics: Interfaces.Topic[]
  constructor(loaded: readonly Command.Loadable[], topicTable: Registry['topics'], env: ProcessEnvironment) {
    super(env)
    this.#commands = loaded
    // oclif shows a topic only if it has a subtopic, and counts commands as such.
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

class SvcHelp extends Help {
  readonly #write: (text: string) => void

  constructor(config: HelpConfig, columns: number | undefined, write: (text: string) => void) {
    super(config, { maxWidth: Math.min(columns ?? maxColumns, maxColumns) })
    this.#write = write
  }

  /** oclif's own output ignores every error. */
  protected override log(...lines: string[]): void {
    this.#write(`${lines.join(' ')}\n`)
  }

  protected override formatCommand(command: Command.Loadable): string {
    const { common = [] } = command as { readonly common?: readonly string[] }
    const lines = wrap(`${common.join(', ')} (svc help flags)`, maxColumns - 2)
    return `${super.formatCommand(command).trimEnd()}\n\nCOMMON FLAGS\n${lines.map((line) => `  ${line}`).join('\n')}`
  }
}

/** Everything that `svc` lists, each command and topic in one row. */
const overviewRows: Readonly<Record<string, readonly string[]>> = {
  'FIRST STEPS': ['init, import', 'health', 'doctor'],
  MONITORING: 'monitors serve history silence ack notify drill impact heartbeat heartbeats nodes'.split(' '),
  ACCESS: ['login, logout', 'whoami', 'passwd', 'users', 'roles', 'sessions', 'keys', 'audit'],
  'THIS MACHINE': 'profile config secrets drivers backup restore api completion version'.split(' '),
}
/** The meaning of rows with two commands. */
const pairs: Readonly<Record<string, string>> = {
  'init, import': 'Write a svc.yaml for this machine, or from another tool',
  'login, logout': 'Sign in to a server, with a token in the keychain, and out',
}

/** The answer of `svc` alone: everything that there is, on one screen. */
async function overviewText({ commands, topics }: Registry, columns: number): Promise<string> {
  const meaning = async (name: string): Promise<readonly [string, string]> => {
    const summary = topics[name] ?? (await commands[name]?.())?.summary
    return [name, summary ?? pairs[name] ?? '']
  }
  const groups = await Promise.all(
    Object.entries(overviewRows).map(async ([title, names]) => [title, await Promise.all(names.map(meaning))] as const),
  )
  const left = Math.max(...groups.flatMap(([, rows]) => rows.map(([name]) => name.length)))
  return [
    ...wrap(`svc ${packageJson().version}: monitoring, health checks and role administration for servers`, columns),
    ...wrap('USAGE  svc COMMAND [flags]; svc COMMAND --help explains it', columns),
    '',
    ...groups.flatMap(([title, rows]) => [title, aligned(rows, left, columns)]),
    '',
    ...wrap(`SUBJECTS  svc help ${Object.keys(helpTopics).join(' | ')}`, columns),
  ].join('\n')
}

/** Help for everything, a topic, a command or a subject. An unknown word or flag is a usage fault. */
export async function showHelp(
  argv: readonly string[],
  commandId: string | undefined,
  registry: Registry,
  io: Io,
): Promise<void> {
  const parts: string[] = []
  const write = (text: string): void => void parts.push(text)
  await writeHelp(
    argv.filter((word) => word !== '--no-pager'),
    commandId,
    registry,
    { io, write },
  )
  if (parts.length === 0) return
  const { showInPager } = await import('../io/pager.ts')
  await showInPager(parts.join(''), io, argv, 'text')
}

async function writeHelp(
  argv: readonly string[],
  commandId: string | undefined,
  registry: Registry,
  { io, write }: { readonly io: Io; readonly write: (text: string) => void },
): Promise<void> {
  const words = argv.filter((word) => word !== 'help' && !word.startsWith('-'))
  const requested = commandId ?? words.join(':')
  const refused =
    requested === '' || Object.hasOwn(registry.commands, requested) || Object.hasOwn(registry.topics, requested)
      ? misplacedFlag(argv, commandId, requested)
      : await unknown(argv, registry)
  const subject = argv[0] === 'help' && words.length === 1 ? helpTopics[words[0] ?? ''] : undefined
  if (subject) {
    write(`${await subject.text(registry)}\n`)
    return
  }
  if (refused) {
    await settle(refused, { json: argv.includes('--json'), debug: false }, io)
    return
  }
  if (requested === '') {
    write(`${await overviewText(registry, io.stdout.columns ?? maxColumns)}\n`)
    return
  }
  const loaded = await Promise.all(Object.entries(registry.commands).map(([id, load]) => loadable(id, load)))
  const help = new SvcHelp(new HelpConfig(loaded, registry.topics, io.env), io.stdout.columns, write)
  await help.showHelp([requested])
}

async function loadable(id: string, load: () => Promise<CommandClass>): Promise<Command.Loadable> {
  const command = (await load()) as unknown as Command.Class
  const flags = flagsOf({ ...command.flags, ...command.baseFlags }).filter(([, flag]) => !flag.hidden)
  const args = Object.values(command.args ?? {}).filter(({ hidden }) => !hidden)
  return {
    id,
    summary: command.summary,
    // Written in lines for the sources, and wrapped to the width of the help.
    description: command.description?.replace(/([^\n])\n(?!\n)/g, '$1 '),
    usage: [id.replaceAll(':', ' '), ...args.map(argumentLabel), '[flags]'].join(' '),
    examples: command.examples,
    args: Object.fromEntries(
      Object.entries(command.args ?? {}).map(([name, arg]) => [name, { ...arg, required: isRequired(arg) }]),
    ),
    flags: Object.fromEntries(flags.filter(([, flag]) => !isCommon(flag))),
    common: flags.flatMap(([name, flag]) => (isCommon(flag) ? [`--${name}`] : [])),
    strict: command.strict,
    hidden: command.hidden,
    aliases: [],
    hiddenAliases: [],
    hasDynamicHelp: false,
    load: async () => command,
  } as unknown as Command.Loadable
}

const helpFlags: readonly string[] = ['--help', '-h']

/**
 * The fault for a flag where svc reads none: without a command, or before its name. Help for a command passes over the
 * flags after its name, so that `--help` can be appended to any command line.
 */
function misplacedFlag(argv: readonly string[], commandId: string | undefined, requested: string): Fault | undefined {
  if (commandId !== undefined) return undefined
  const flag = argv.find((word) => word.startsWith('-') && !helpFlags.includes(word))
  if (flag === undefined) return undefined
  const name = flag.replace(/^-+/, '').replace(/=.*$/s, '')
  const isKnown = commonFlags.flatMap(({ flags }) => flags).some(([long, { char }]) => name === long || name === char)
  const command = requested.replaceAll(':', ' ')
  if (!isKnown) {
    const nearest = didYouMean(name, ['help', 'version'])
    const hint = `svc ${command === '' ? 'help' : `${command} --help`} shows the commands and their flags.`
    return new Fault('Usage', `unknown flag ${flag}`, {
      hints: [...(nearest === undefined ? [] : [`Did you mean --${nearest}?`]), hint],
    })
  }
  return new Fault('Usage', command === '' ? `${flag} without a command` : `${flag} before the command`, {
    hints: [`Flags follow the command: svc ${command === '' ? 'COMMAND' : command} ${flag}`],
  })
}

const namesOf = ({ commands, topics }: Registry): CommandNames => ({
  commands: Object.keys(commands).map((id) => id.replaceAll(':', ' ')),
  topics: Object.keys(topics),
})

/** The fault for words that name no command, or for a flag of the command that stands before it. */
async function unknown(argv: readonly string[], registry: Registry): Promise<Fault> {
  const names = namesOf(registry)
  const flag = argv[0] ?? ''
  if (!flag.startsWith('-')) return unknownCommand(argv, names)
  const command = argv.flatMap((word, at) => {
    const name = [`${word} ${argv[at + 1] ?? ''}`, word].find((one) => names.commands.includes(one))
    return name === undefined ? [] : [{ name, at }]
  })[0]
  if (command === undefined || !(await takesFlag(command.name, flag, registry))) {
    const others = argv.slice(hasValue(flag) ? 2 : 1).filter((word) => !word.startsWith('-'))
    const misplaced = others.length === 0 ? misplacedFlag(argv, undefined, '') : undefined
    return misplaced ?? unknownCommand(others, names)
  }
  const rest = argv.toSpliced(command.at, command.name.split(' ').length).map(shellWord)
  return new Fault('Usage', `${flag} before the command`, {
    hints: [`Flags follow the command: svc ${command.name} ${rest.join(' ')}`],
  })
}

/** Whether the word after a common flag is its value. */
const hasValue = (flag: string): boolean =>
  commonFlags
    .flatMap(({ flags }) => flags)
    .some(([long, { type, char }]) => type === 'option' && (flag === `--${long}` || flag === `-${char ?? ''}`))

async function takesFlag(command: string, flag: string, { commands }: Registry): Promise<boolean> {
  const load = commands[command.replaceAll(' ', ':')]
  if (load === undefined) return false
  const Command = await load()
  const name = flag.replace(/=.*$/s, '')
  return flagsOf({ ...Command.baseFlags, ...Command.flags }).some(
    ([long, { char }]) => name === `--${long}` || name === `-${char ?? ''}`,
  )
}
