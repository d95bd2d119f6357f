import type { Command } from '@oclif/core/command'
import { sanitizeLine } from '../../../core/base/sanitize.ts'
import { driverNames } from '../../../core/checks/drivers/index.ts'
import { ExecutionMode, HeartbeatStatus, ServerType } from '../../../core/protocol/index.ts'
import { auditFormats } from '../../command/audit-flags.ts'
import { listFormats } from '../../command/base.ts'
import { outputs, timeoutStates } from '../../health/health.ts'
import type { Io, ProcessEnvironment } from '../../io/io.ts'
import { homeOf, machine } from '../../io/process.ts'
import { readSettings, storePath } from '../../session/session.ts'
import { configKeys } from '../../setup/config-keys.ts'
import type { Registry } from '../help.ts'
import { type Shell, shells } from './scripts.ts'

/** A command line up to the cursor, as far as completion needs it. */
type TypedLine = {
  /** The complete words after `svc`. */
  readonly words: readonly string[]
  /** The word at the cursor without its quotes; may be empty. */
  readonly current: string
}

const operators = /[;&|()\n]/

/** Reads the last command of a line that a POSIX shell would run, with its quotes and backslashes. */
export function readLine(line: string): TypedLine {
  let words: string[] = []
  let word: string | undefined
  let quote: string | undefined
  let isEscaped = false
  for (const char of line) {
    if (isEscaped) {
      isEscaped = false
      word = `${word ?? ''}${char}`
    } else if (char === '\\' && quote !== "'") isEscaped = true
    else if (quote !== undefined) {
      if (char === quote) quote = undefined
      else word = `${word ?? ''}${char}`
    } else if (char === '"' || char === "'") {
      quote = char
      word ??= ''
    } else if (operators.test(char)) {
      words = []
      word = undefined
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = `${word ?? ''}${char}`
  }
  const program = words.findIndex((one) => /(?:^|[\\/])svc(?:\.cmd)?$/.test(one))
  return { words: words.slice(program + 1), current: word ?? '' }
}

type Word = { readonly value: string; readonly description?: string | undefined }
/** `files`: the shell completes names of files. */
type Candidates = readonly Word[] | 'files'

type Flag = Command.Flag.Any
type CommandTable = {
  readonly id: string
  readonly flags: Readonly<Record<string, Flag>>
  readonly args: readonly string[]
  /** Whether its last argument takes several words. */
  readonly takesMore: boolean
  readonly rest: readonly string[]
}

/** Characters of one candidate, and candidates that are printed. */
const maxValue = 200
const maxCandidates = 1_000

/**
 * Prints the words that may follow a command line, for the script of `svc completion`. Reads svc.yaml, the settings and
 * the embedded store; contacts no server, asks no keychain, changes nothing and prints no secret. Prints nothing when
 * anything fails: a completion must not disturb the command line.
 */
export async function printCompletions(argv: readonly string[], registry: Registry, io: Io): Promise<void> {
  const [shell = '', line = ''] = argv
  if (!shells.includes(shell as Shell)) return
  try {
    const candidates = await candidatesFor(readLine(line), registry, io.env)
    // The shell reads it, and needs the names as they are.
    io.stdout.write(format(shell as Shell, readLine(line), candidates), 'verbatim')
  } catch {
    // For example a svc.yaml with a mistake: svc monitors validate reports it.
  }
}

function format(shell: Shell, { current }: TypedLine, candidates: Candidates): string {
  if (candidates === 'files') return ':files\n'
  const lines = candidates
    .filter(({ value }) => value.startsWith(current) && value.length <= maxValue && sanitizeLine(value) === value)
    .slice(0, maxCandidates)
    .map(({ value, description = '' }) => {
      if (shell === 'bash') return bashWord(value, current)
      return `${value}\t${sanitizeLine(description)}`
    })
  return lines.map((one) => `${one}\n`).join('')
}

/** bash replaces only what follows the last of its word breaks, and inserts the text as it is. */
function bashWord(value: string, current: string): string {
  const breakAt = Math.max(current.lastIndexOf(':'), current.lastIndexOf('='))
  const rest = value.slice(breakAt + 1)
  return rest.replace(/[^\w@%+=:,./*-]/g, '\\$&')
}

/** The candidates at the cursor. */
async function candidatesFor(line: TypedLine, registry: Registry, env: ProcessEnvironment): Promise<Candidates> {
  const { words, current } = line
  if (words.includes('--')) return 'files'
  const command = await commandOf(words, registry)
  if (!command) return await nextWords(words, registry)
  const before = command.rest.at(-1) ?? ''
  const open = flagNamed(command.flags, before)
  if (open && open.flag.type === 'option') return await valuesOf(open.name, command, current, env)
  const [, name, typed] = /^(--[\w-]+=)(.*)$/s.exec(current) ?? []
  if (name !== undefined && typed !== undefined) {
    const flag = flagNamed(command.flags, name.slice(0, -1))
    const values = flag ? await valuesOf(flag.name, command, typed, env) : []
    return values === 'files' ? values : values.map((one) => ({ ...one, value: `${name}${one.value}` }))
  }
  if (current.startsWith('-')) return flagsOf(command)
  // A command may have others below it: serve, serve reload.
  const below = command.rest.length === 0 && !command.id.includes(':') ? await nextWords(words, registry) : []
  if (below.length > 0) return current === '' ? [...below, ...flagsOf(command)] : below
  const position = positionOf(command)
  const arg = command.args[position] ?? (command.takesMore ? command.args.at(-1) : undefined)
  if (arg === undefined) return current === '' ? flagsOf(command) : []
  return await argumentsOf(command, arg, current, env)
}

/** The command that begins the line, loaded alone, or undefined while its name is incomplete. */
async function commandOf(words: readonly string[], registry: Registry): Promise<CommandTable | undefined> {
  for (const count of [2, 1]) {
    const id = words.slice(0, count).join(':')
    const load = words.length >= count && Object.hasOwn(registry.commands, id) ? registry.commands[id] : undefined
    if (!load) continue
    const Class = await load()
    const flags = Object.entries({ ...Class.flags, ...Class.baseFlags } as Record<string, Flag>)
    return {
      id,
      flags: Object.fromEntries(flags.filter(([, { hidden }]) => !hidden)),
      args: Object.keys(Class.args),
      takesMore: Object.values(Class.args).at(-1)?.multiple === true,
      rest: words.slice(count),
    }
  }
  return undefined
}

async function nextWords(words: readonly string[], registry: Registry): Promise<readonly Word[]> {
  const ids = Object.keys(registry.commands)
  if (words.length === 0 || words[0] === 'help') {
    const topics = Object.entries(registry.topics).map(([value, description]) => ({ value, description }))
    const commands = ids.filter((id) => !id.includes(':')).map((value) => ({ value }))
    if (words.length === 0)
      return [...topics, ...commands, { value: 'help' }, { value: '--help' }, { value: '--version' }]
    const { helpTopics } = await import('../help.ts')
    const subjects = Object.entries(helpTopics).map(([value, { summary }]) => ({ value, description: summary }))
    return [...topics, ...commands, ...subjects]
  }
  const [topic = ''] = words
  return ids.filter((id) => id.startsWith(`${topic}:`)).map((id) => ({ value: id.slice(topic.length + 1) }))
}

function flagNamed(
  flags: CommandTable['flags'],
  word: string,
): { readonly name: string; readonly flag: Flag } | undefined {
  const name = word.startsWith('--')
    ? word.slice(2)
    : /^-[a-zA-Z]$/.test(word)
      ? Object.keys(flags).find((one) => flags[one]?.char === word[1])
      : undefined
  const flag = name !== undefined && Object.hasOwn(flags, name) ? flags[name] : undefined
  return name !== undefined && flag ? { name, flag } : undefined
}

/** The flags that may still be given. */
const flagsOf = ({ flags, rest }: CommandTable): readonly Word[] =>
  [
    ...Object.entries(flags)
      .filter(([name, flag]) => (flag.type === 'option' && flag.multiple) || !rest.includes(`--${name}`))
      .map(([name, { description }]) => ({ value: `--${name}`, description })),
    { value: '--help', description: 'Show the help of this command' },
  ].sort((a, b) => (a.value < b.value ? -1 : 1))

/** The index of the argument at the cursor: words that are neither flags nor their values. */
function positionOf({ flags, rest }: CommandTable): number {
  let position = 0
  for (let at = 0; at < rest.length; at += 1) {
    const word = rest[at] ?? ''
    if (!word.startsWith('-')) position += 1
    else if (flagNamed(flags, word)?.flag.type === 'option') at += 1
  }
  return position
}

const fixed = (values: readonly string[]): readonly Word[] => values.map((value) => ({ value }))

/** The server types for a word such as `App,S`, each behind the types that are already in it. */
function types(current: string): readonly Word[] {
  const before = current.slice(0, current.lastIndexOf(',') + 1)
  const present = before.split(',')
  const names = ServerType.values.filter((type) => !present.includes(type))
  return fixed([...names.map((type) => before + type), ...(before === '' ? ['all'] : [])])
}

/** The values of a flag, for the value typed so far. Flags that no entry covers have values that cannot be known. */
async function valuesOf(
  flag: string,
  { id, rest }: CommandTable,
  current: string,
  env: ProcessEnvironment,
): Promise<Candidates> {
  if (flag === 'mode' || flag === 'depth') return fixed(ExecutionMode.values)
  if (flag === 'type') return id === 'history' ? fixed(ServerType.values) : types(current)
  if (flag === 'output') return fixed(id === 'health' ? outputs : id === 'audit:list' ? auditFormats : listFormats)
  if (flag === 'event') return fixed(await auditEvents())
  if (flag === 'color') return fixed(['auto', 'always', 'never'])
  if (flag === 'status') return fixed(HeartbeatStatus.values)
  if (flag === 'credentials') return fixed(['always', 'when-asked'])
  if (flag === 'fail-on') return fixed(['warn'])
  if (flag === 'nagios-timeout') return fixed(timeoutStates)
  if (flag === 'profile') return await profiles(env)
  if (flag === 'role') return await stored('roles', rest, env)
  if (flag === 'permission') return await stored('permissions', rest, env)
  if (flag === 'user') return await stored('users', rest, env)
  if (flag === 'only' || flag === 'skip' || flag === 'monitor') return await monitors(rest, env)
  if (flag === 'through') return await receivers(rest, env)
  const files = [
    'config',
    'store',
    'ca-file',
    'disk',
    'from-file',
    'port-file',
    'tls-cert',
    'tls-key',
    'data',
    'export',
    'bootstrap-password-file',
  ]
  return files.includes(flag) ? 'files' : []
}

async function auditEvents(): Promise<readonly string[]> {
  const { loadAuditEvents } = await import('../../../core/store/index.ts')
  return (await loadAuditEvents()).auditEventNames
}

async function argumentsOf(
  { id, rest }: CommandTable,
  arg: string,
  current: string,
  env: ProcessEnvironment,
): Promise<Candidates> {
  const [topic = '', verb = ''] = id.split(':')
  if (topic === 'users' && verb !== 'add') return await stored('users', [], env)
  if (id === 'backup' || id === 'restore' || id === 'audit:export') return 'files'
  if (id === 'roles:holders' || id === 'roles:give-back') return await stored('roles', [], env)
  if (topic === 'roles') return await stored('users', [], env)
  if (id === 'keys:revoke') return await stored('keys', [], env)
  if (id === 'heartbeats:remove') return await stored('agents', [], env)
  if (topic === 'profile' && verb !== 'add') return await profiles(env)
  if (topic === 'config' && arg === 'key') return fixed(Object.keys(configKeys))
  if (id === 'notify:test') return await receivers(rest, env)
  if (id === 'drivers:add') return fixed(driverNames)
  if (['monitors:test', 'monitors:edit', 'monitors:remove'].includes(id)) return await monitors([], env)
  if (id === 'impact') return [...(await monitors([], env)), ...(await tags(env))]
  if (id === 'monitors:kinds' || id === 'monitors:add') {
    const { describeKinds } = await import('../../../core/checks/plan/index.ts')
    return (await describeKinds()).map(({ name, title }) => ({ value: name, description: title }))
  }
  if (id === 'monitors:profiles') {
    const { describeProfiles } = await import('../../../core/checks/plan/index.ts')
    return (await describeProfiles()).map(({ name }) => ({ value: name }))
  }
  if (id === 'health' && arg === 'types') return types(current)
  if (id === 'completion') return fixed(shells)
  return id === 'api' && arg === 'method' ? fixed(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']) : []
}

/** The value of a flag that stands on the line, so that names come from the same file as those of the command. */
const typedFlag = (rest: readonly string[], name: string): string | undefined => {
  const at = rest.indexOf(`--${name}`)
  return at === -1 ? rest.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3) : rest[at + 1]
}

async function profiles(env: ProcessEnvironment): Promise<readonly Word[]> {
  const { profiles: all } = await readSettings(env)
  return all.map(({ name, server }) => ({ value: name, description: server }))
}

async function configIn(rest: readonly string[], env: ProcessEnvironment) {
  const { loadConfig } = await import('../../../core/config/index.ts')
  const path = typedFlag(rest, 'config')
  return await loadConfig({
    ...(path === undefined ? {} : { path }),
    env,
    platform: machine.platform,
    home: homeOf(env),
  })
}

async function receivers(rest: readonly string[], env: ProcessEnvironment): Promise<readonly Word[]> {
  const { notify = [] } = await configIn(rest, env)
  return notify.map(({ name, kind }) => ({ value: name, description: kind }))
}

/** The tags of monitors, as `dependsOn` writes them. */
async function tags(env: ProcessEnvironment): Promise<readonly Word[]> {
  const { types } = await configIn([], env)
  const all = Object.values(types).flatMap(({ monitors: of }) => of.flatMap((one) => one.tags ?? []))
  return fixed([...new Set(all)].sort().map((tag) => `tag:${tag}`))
}

async function monitors(rest: readonly string[], env: ProcessEnvironment): Promise<readonly Word[]> {
  const { types } = await configIn(rest, env)
  return Object.entries(types).flatMap(([type, entry]) =>
    entry.monitors.map(({ name }) => ({ value: name, description: type })),
  )
}

async function stored(
  names: 'users' | 'roles' | 'permissions' | 'keys' | 'agents',
  rest: readonly string[],
  env: ProcessEnvironment,
): Promise<readonly Word[]> {
  const { loadStoredNames } = await import('../../../core/store/index.ts')
  const store = await storePath({ store: typedFlag(rest, 'store')?.replace(/^~(?=\/)/, homeOf(env)) }, env)
  return fixed(await (await loadStoredNames())(store, names))
}
