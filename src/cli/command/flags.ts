/**
 * Flags and arguments: how commands declare them, and how a command line is parsed. They are declared as the same data
 * that oclif's own builders make. oclif reads that data for help and for every command line that is not parsed here.
 * Loading oclif only to declare or parse flags takes as long as starting Node.
 */
import type { string as oclifString } from '@oclif/core/args'
import type { boolean as oclifBoolean, custom as oclifCustom } from '@oclif/core/flags'
import type { ArgInput, FlagInput, Input, ParserOutput } from '@oclif/core/parser'
import { Fault } from '../../core/base/errors.ts'
import { nearestHint } from '../../core/base/suggest.ts'
import { ExecutionMode, ServerType } from '../../core/protocol/index.ts'
import type { ProcessEnvironment } from '../io/io.ts'
import { helpHint } from './exit.ts'

const asWritten = async <T>(input: T): Promise<T> => input

type Properties = Readonly<Record<string, unknown>>

/** A flag without a value. */
export const boolean = ((options: Properties = {}) => ({
  parse: asWritten,
  ...options,
  allowNo: Boolean(options['allowNo']),
  type: 'boolean',
})) as unknown as typeof oclifBoolean

/** A flag with a value. The options of one flag override the defaults of its kind. */
export const custom = ((defaults: Properties = {}) =>
  (options: Properties = {}) => ({
    parse: asWritten,
    ...defaults,
    ...options,
    input: [],
    multiple: Boolean(options['multiple'] ?? defaults['multiple']),
    type: 'option',
  })) as unknown as typeof oclifCustom

/** An argument: a word that belongs to no flag. */
export const argument = ((options: Properties = {}) => ({
  parse: asWritten,
  ...options,
  input: [],
  type: 'option',
})) as unknown as typeof oclifString

/** An argument that may be absent. It is never read from standard input. */
export const optionalArgument = (name: string, description: string) =>
  argument({ name, description, ignoreStdin: true })

/**
 * An argument that the command cannot do without. `required` refuses its absence, in words of ours: oclif only learns
 * of it for the help.
 */
export const requiredArgument = (name: string, description: string): ReturnType<typeof optionalArgument> =>
  Object.assign(optionalArgument(name, description), { mandatory: true })

/** Whether the help shows an argument without brackets. */
export const isRequired = (arg: object): boolean => 'mandatory' in arg

/** `NAME`, `[NAME]` for an argument that may be absent, `[NAME...]` for one that takes several words. */
export const argumentLabel = (arg: ArgInput[string]): string => {
  const name = `${arg.name.toUpperCase()}${arg.multiple ? '...' : ''}`
  return isRequired(arg) ? name : `[${name}]`
}

/**
 * A value of a closed set, in any letter case. The error for a mistyped one suggests the nearest value and lists all.
 */
export function oneOf<V extends string>(what: string, values: readonly V[], input: string, listed: string): V {
  const match = values.find((value) => value.toLowerCase() === input.toLowerCase())
  if (match !== undefined) return match
  if (input === '') throw new Fault('Usage', `--${what} is empty`, { hints: [`${listed}: ${values.join(' ')}`] })
  throw unknownName(`--${what}`, input, values, listed)
}

/** The Fault for a name that is none of these: it suggests the nearest, and lists all after the word `listed`. */
export const unknownName = (what: string, input: string, names: readonly string[], listed: string): Fault =>
  new Fault('Usage', `unknown ${what} "${input}"`, {
    hints: [...nearestHint(input, names), `${listed}: ${names.join(' ')}`],
  })

/** The row with a name. Throws `Fault` Usage with the nearest name and all names. */
export function rowNamed<Row extends { readonly name: string }>(
  rows: readonly Row[],
  name: string,
  what: string,
  listed: string,
): Row {
  const row = rows.find((one) => one.name === name)
  if (row) return row
  const names = rows.map((one) => one.name)
  throw unknownName(what, name, names, listed)
}

type Described = { readonly description: string; readonly helpGroup?: string }

export const modeFlag = custom<ExecutionMode>({
  char: 'm',
  helpValue: `<${ExecutionMode.values.join('|')}>`,
  parse: async (input) => oneOf('mode', ExecutionMode.values, input, 'Modes'),
})

const typesAndAll = [...ServerType.values, 'all'] as const
export type TypeOrAll = (typeof typesAndAll)[number]
/** `App` or `App,Sql` → the types. */
export const parseTypes = (input: string): readonly TypeOrAll[] =>
  input.split(',').map((part) => oneOf('type', typesAndAll, part.trim(), 'Types'))
/** Repeatable; each flag takes one list of types. */
export const typesFlag = (described: Described) =>
  custom<readonly TypeOrAll[]>({
    char: 't',
    helpValue: '<App,Sql|…>',
    parse: async (input) => parseTypes(input),
  })({ multiple: true, multipleNonGreedy: true, ...described })

/** One server type. */
export const typeFlag = (described: Described) =>
  custom<ServerType>({
    char: 't',
    helpValue: '<App|Sql|…>',
    parse: async (input) => oneOf('type', ServerType.values, input, 'Types'),
  })(described)

const colours = ['auto', 'always', 'never'] as const
export const colourFlag = custom<(typeof colours)[number]>({
  helpValue: `<${colours.join('|')}>`,
  parse: async (input) => oneOf('color', colours, input, 'Values'),
})({ description: 'When to use color (auto: on a terminal)', helpGroup: 'GLOBAL' })

/** A text that must not be empty: an unset CI variable must not count as an absent flag. */
export const text = (what: string) =>
  custom<string>({
    parse: async (input) => {
      if (input.trim() !== '') return input
      throw new Fault('Usage', `--${what} is empty`, { hints: ['Omit the flag, or give it a value.'] })
    },
  })

const units: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, min: 60_000, h: 3_600_000 }

/** `500ms`, `5s`, `2m`, `1h` → milliseconds. */
export function parseDuration(what: string, input: string): number {
  const [, figure, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|min|h)$/.exec(input.trim()) ?? []
  const ms = Number(figure) * (units[unit ?? ''] ?? Number.NaN)
  if (!(ms > 0)) {
    throw new Fault('Usage', `--${what} "${input}" is not a valid duration`, {
      hints: [`Write a number and its unit, for example --${what} 500ms, 5s, 2m or 1h.`],
    })
  }
  return ms
}
const longUnits: Record<string, number> = { ...units, d: 86_400_000, w: 604_800_000 }

/** How far back something goes: `30m`, `6h`, `7d`, `52w` → milliseconds, between two bounds. */
export const sinceFlag = ({ least, most }: { readonly least: string; readonly most: string }) => {
  const msOf = (input: string): number => {
    const [, figure, unit] = /^(\d+(?:\.\d+)?)(m|min|h|d|w)$/.exec(input.trim()) ?? []
    return Number(figure) * (longUnits[unit ?? ''] ?? Number.NaN)
  }
  return custom<number>({
    helpValue: '<6h|7d|…>',
    parse: async (input) => {
      const ms = msOf(input)
      if (ms >= msOf(least) && ms <= msOf(most)) return ms
      throw new Fault('Usage', `--since "${input}" is not a time from ${least} to ${most}`, {
        hints: ['Write a number and its unit, for example --since 30m, 6h or 7d.'],
      })
    },
  })
}

export const durationFlag = (what: string) =>
  custom<number>({ helpValue: '<5s|2m|…>', parse: async (input) => parseDuration(what, input) })

/** A delay of at most `maxMs` milliseconds; `0` and `0s` mean none. */
export const delayFlag = (what: string, maxMs: number) =>
  custom<number>({
    helpValue: '<10s|1m|…>',
    parse: async (input) => {
      const ms = /^0(?:ms|s|m|min|h)?$/.test(input.trim()) ? 0 : parseDuration(what, input)
      if (ms <= maxMs) return ms
      throw new Fault('Usage', `--${what} "${input}" is too long`, { hints: [`At most ${maxMs / 60_000}m.`] })
    },
  })

/** A flag with a name that may be repeated. */
export const repeatable = { multiple: true, multipleNonGreedy: true } as const

/** For commands whose change the audit log records. */
export const reasonFlag = text('reason')({ description: 'Reason, recorded in the audit log' })

/** Which server or store a command uses, and with what credentials. */
export const connectionFlags = {
  server: text('server')({
    description: "URL of a server (SVC_SERVER); default: the profile's server, or this machine",
    helpGroup: 'TARGET',
  }),
  profile: text('profile')({ description: 'Use the server of this profile (SVC_PROFILE)', helpGroup: 'TARGET' }),
  local: boolean({ description: 'Act on this machine, ignoring SVC_SERVER and the profile', helpGroup: 'TARGET' }),
  store: text('store')({ description: "The embedded store's file (SVC_STORE)", helpGroup: 'TARGET' }),
  config: text('config')({ description: 'The svc.yaml to use (SVC_CONFIG)', helpGroup: 'TARGET' }),
  'ca-file': text('ca-file')({
    description: 'PEM file of a private certificate authority (SVC_CA_FILE)',
    helpGroup: 'TARGET',
  }),
  'insecure-http': boolean({ description: 'Allow plain http to another machine', helpGroup: 'TARGET' }),
} as const

const { store: _, config: __, ...whereFlags } = connectionFlags
/** Those of commands that are about a sign-in, and so about no store of this machine and no svc.yaml. */
export const signInFlags = whereFlags

/** For commands that always act on this machine: makes that explicit, and omits the note about a server. */
export const localFlag = boolean({
  description: 'Omit the note that this command acts on this machine',
  helpGroup: 'TARGET',
})

/** A required argument. `what` is its name in the help, e.g. NAME. */
export function required(value: string | undefined, what: string): string {
  if (value !== undefined && value.trim() !== '') return value
  throw new Fault('Usage', `${what} is ${value === undefined ? 'missing' : 'empty'}`, {
    hints: [helpHint],
  })
}

/**
 * A variable that is set but empty is an error, not an absent one: a gate in CI must not turn green by checking its own
 * runner because a secret is missing.
 */
export function variable(env: ProcessEnvironment, name: string): string | undefined {
  const value = env[name]
  if (value !== undefined && value.trim() === '') {
    throw new Fault('Usage', `${name} is set but empty`, { hints: [`Give ${name} a value, or unset it.`] })
  }
  return value
}

/** The values that a command gets from its command line. */
export type Parsed<F extends Values, B extends Values, A extends Values> = Pick<ParserOutput<F, B, A>, 'flags' | 'args'>
export type Values = Record<string, unknown>

/**
 * Parses a command line by the tables of its command. The usual forms are parsed here, all others and every mistake by
 * oclif.
 */
export async function parse<F extends Values, B extends Values, A extends Values>(
  command: Input<F, B, A>,
  argv: readonly string[],
): Promise<Parsed<F, B, A>> {
  const { args = {}, flags = {}, baseFlags = {}, strict } = command
  const table = { flags: { ...baseFlags, ...flags } as FlagInput, args: args as ArgInput }
  const usual = strict === false ? undefined : await parseUsual(table, argv)
  if (usual) return usual as unknown as Parsed<F, B, A>
  refuseNeedlessValues(table.flags, argv)
  const oclif = await import('@oclif/core/parser')
  return (await oclif.parse([...argv], table)) as unknown as Parsed<F, B, A>
}

/** Throws Usage for a value after a flag that takes none: oclif would take the value for an argument. */
function refuseNeedlessValues(flags: FlagInput, argv: readonly string[]): void {
  const end = argv.indexOf('--')
  for (const word of end === -1 ? argv : argv.slice(0, end)) {
    const [, name = ''] = /^--([^=]+)=/s.exec(word) ?? []
    if (!Object.hasOwn(flags, name) || flags[name]?.type !== 'boolean') continue
    throw new Fault('Usage', `--${name} takes no value`, { hints: [`Write --${name} alone, or omit it.`] })
  }
}

type Table = { readonly flags: FlagInput; readonly args: ArgInput }

/** Properties of a flag that do not change how it is parsed, or that this parser handles. */
const knownToFlags: ReadonlySet<string> = new Set([
  'name',
  'type',
  'char',
  'description',
  'summary',
  'helpGroup',
  'helpLabel',
  'helpValue',
  'hidden',
  'input',
  'multiple',
  'multipleNonGreedy',
  'parse',
])
const knownToArgs: ReadonlySet<string> = new Set([
  'name',
  'type',
  'description',
  'hidden',
  'ignoreStdin',
  'input',
  'mandatory',
  'multiple',
  'parse',
])

/**
 * Flags and arguments as oclif would return them. Undefined when oclif has to decide: for a table with an unknown
 * property, an ambiguous word, and anything wrong.
 *
 * It handles `--flag`, `-f`, `--flag value`, `-f value`, `--flag=value` and arguments. No value may start with a dash.
 */
export async function parseUsual(
  { flags, args }: Table,
  argv: readonly string[],
): Promise<{ readonly flags: Record<string, unknown>; readonly args: Record<string, unknown> } | undefined> {
  if (!isPlain(flags, args)) return undefined
  const values = new Map<string, string[]>()
  const words: string[] = []
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at] ?? ''
    if (!word.startsWith('-')) {
      words.push(word)
      continue
    }
    const equals = word.startsWith('--') ? word.indexOf('=') : -1
    const name = flagName(flags, equals === -1 ? word : word.slice(0, equals))
    const flag = name === undefined ? undefined : flags[name]
    if (name === undefined || flag === undefined) return undefined
    if (flag.type === 'boolean') {
      if (equals !== -1) return undefined
      values.set(name, [])
      continue
    }
    if (equals === -1) at += 1
    const value = equals === -1 ? argv[at] : word.slice(equals + 1)
    if (value === undefined || value.startsWith('-')) return undefined
    const earlier = values.get(name)
    if (earlier && !flag.multiple) return undefined
    values.set(name, [...(earlier ?? []), value])
  }
  const rest = Object.values(args).at(-1)?.multiple === true
  if (!rest && words.length > Object.keys(args).length) return undefined
  try {
    return { flags: await parseFlags(flags, values), args: await parseArgs(args, words) }
  } catch {
    // oclif calls the same function again, and names the flag in its message.
    return undefined
  }
}

const isPlain = (flags: FlagInput, args: ArgInput): boolean =>
  Object.values(flags).every(
    (flag) =>
      Object.keys(flag).every((key) => knownToFlags.has(key) || (key === 'allowNo' && flag[key as never] === false)) &&
      // A greedy flag also takes the arguments after its value.
      (flag.type === 'boolean' || !flag.multiple || flag.multipleNonGreedy === true),
  ) &&
  Object.values(args).every(
    // A missing argument might be read from standard input.
    (arg, at, all) =>
      arg.ignoreStdin === true &&
      // Only the last argument may take the rest of the words.
      (arg.multiple !== true || at === all.length - 1) &&
      Object.keys(arg).every((key) => knownToArgs.has(key)),
  )

/** `--type` or `-t` → `type`. */
function flagName(flags: FlagInput, word: string): string | undefined {
  if (word.startsWith('--')) return Object.hasOwn(flags, word.slice(2)) ? word.slice(2) : undefined
  return word.length === 2 ? Object.keys(flags).find((name) => flags[name]?.char === word[1]) : undefined
}

type Parse = (input: unknown, context: unknown, declared: unknown) => Promise<unknown>

async function parseFlags(
  flags: FlagInput,
  values: ReadonlyMap<string, readonly string[]>,
): Promise<Record<string, unknown>> {
  const parsed: Record<string, unknown> = {}
  for (const [name, flag] of Object.entries(flags)) {
    const inputs = values.get(name)
    if (!inputs) continue
    const one = (input: unknown): Promise<unknown> => (flag.parse as Parse)(input, {}, flag)
    if (flag.type === 'boolean') parsed[name] = await one(true)
    else parsed[name] = flag.multiple ? await Promise.all(inputs.map(one)) : await one(inputs[0])
  }
  return parsed
}

async function parseArgs(args: ArgInput, words: readonly string[]): Promise<Record<string, unknown>> {
  const parsed: Record<string, unknown> = {}
  for (const [at, [name, arg]] of Object.entries(args).entries()) {
    const own = arg.multiple ? words.slice(at) : words.slice(at, at + 1)
    const values = await Promise.all(own.map((word) => (arg.parse as Parse)(word, {}, arg)))
    if (values.length > 0) parsed[name] = arg.multiple ? values : values[0]
  }
  return parsed
}
