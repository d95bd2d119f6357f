import type { ArgInput, FlagInput } from '@oclif/core/parser'
import { Fault } from '../../core/base/errors.ts'
import { didYouMean } from '../../core/base/suggest.ts'
import { ServerType } from '../../core/protocol/index.ts'
import { shellWord } from '../render/hints.ts'
import { helpHint } from './exit.ts'
import { argumentLabel, connectionFlags } from './flags.ts'

/** A command line that oclif refused, and what its command declares. */
export type CommandLine = {
  readonly flags: FlagInput
  readonly args: ArgInput
  readonly argv: readonly string[]
  /** As it is typed: `users add`. */
  readonly command: string
}

type Mistake = { readonly message: string; readonly hints: readonly string[] }

/** The Fault for an error of oclif's parser: what is wrong, why, and what to type instead. */
export function usageFault(error: Error, line: CommandLine): Fault {
  const { message, hints } = unknownFlag(error, line) ?? unexpectedArgument(error, line) ?? invalidUse(error, line)
  return new Fault('Usage', message, { hints: [...hints, helpHint] })
}

function unknownFlag(error: Error, line: CommandLine): Mistake | undefined {
  if (!('flags' in error) || !Array.isArray(error.flags)) return undefined
  const written = String(error.flags[0])
  const name = written.replace(/^-+/, '').replace(/=.*$/s, '')
  return (
    misplacedTarget(name, line) ?? {
      message: `unknown flag ${written}`,
      hints: instead(written, name, line).slice(0, 1),
    }
  )
}

/** A flag that chooses a server or a file, at a command that uses none. */
function misplacedTarget(name: string, { flags, command }: CommandLine): Mistake | undefined {
  if (!Object.hasOwn(connectionFlags, name)) return undefined
  const hasStore = Object.hasOwn(flags, 'store')
  const place = hasStore ? 'a store on this machine' : 'this machine'
  if (name === 'server' || name === 'profile') {
    const store = hasStore ? ", or name that server's store with --store" : ''
    return {
      message: `--${name} is not valid here: svc ${command} acts on ${place}, not at a server`,
      hints: [`Run it on the machine of that server${store}.`],
    }
  }
  return { message: `--${name} has no effect on svc ${command}`, hints: [`Omit --${name}.`] }
}

/** The suggestions for an unknown flag, the likeliest first. */
function instead(written: string, name: string, { flags, args, command }: CommandLine): readonly string[] {
  const argument = Object.values(args).find((one) => one.name?.toLowerCase() === name.toLowerCase())
  const label = argument?.name.toUpperCase() ?? ''
  const char = Object.entries(flags).find(
    ([, flag]) => name.length === 1 && flag.char?.toLowerCase() === name.toLowerCase(),
  )
  const long = written.startsWith('--') || name.length > 1 ? didYouMean(name, Object.keys(flags)) : undefined
  return [
    ...(char ? [`Did you mean -${char[1].char} (--${char[0]})?`] : []),
    ...(argument ? [`${label} needs no flag: svc ${command} ${label}`] : []),
    ...(long === undefined ? [] : [`Did you mean --${long}?`]),
  ]
}

const isTypeName = (word: string): boolean =>
  ServerType.values.some((type) => type.toLowerCase() === word.toLowerCase())

/** Flags whose value users write without the flag, and how such a value looks. The first that fits is suggested. */
const valueForms: readonly (readonly [string, (word: string) => boolean])[] = [
  ['server', (word) => /^https?:\/\//i.test(word)],
  ['config', (word) => /\.ya?ml$/i.test(word)],
  ['type', (word) => isTypeName(word.split(',', 1)[0] ?? '')],
  ['role', (word) => /^[A-Za-z]/.test(word)],
]

function unexpectedArgument(error: Error, { flags, args, argv, command }: CommandLine): Mistake | undefined {
  if (!('args' in error) || !Array.isArray(error.args) || typeof error.args[0] !== 'string') return undefined
  const word: string = error.args[0]
  const names = Object.values(args).map(argumentLabel)
  const takes = names.length === 0 ? 'no argument' : `only ${names.join(' ')}`
  const flag = valueForms.find(([name, form]) => Object.hasOwn(flags, name) && form(word))?.[0]
  const at = argv.indexOf(word)
  // These two run a command that follows `--`.
  const runs = command === 'heartbeat' || (command === 'login' && flag === undefined)
  const rerun = ['svc', command, ...argv.slice(0, at), '--', ...argv.slice(at)].map(shellWord).join(' ')
  return {
    message: `unexpected argument ${JSON.stringify(word)}: svc ${command} takes ${takes}`,
    hints: [
      ...(flag === undefined ? [] : [`Did you mean --${flag} ${shellWord(word)}?`]),
      ...(runs ? [`To run a command: ${rerun.replace(`svc '${command}'`, `svc ${command}`)}`] : []),
    ],
  }
}

/** A flag that lacks its value, has a wrong one, or needs or excludes another flag. */
function invalidUse(error: Error, { flags }: CommandLine): Mistake {
  const lines = error.message
    .split('\n')
    .map((text) => text.trim())
    .filter((text) => text !== '' && text !== helpLine)
  const [first = '', ...rest] = lines
  const [, lacking] = /^Flag --([\w-]+) expects a value$/.exec(first) ?? []
  if (lacking !== undefined) return { message: `--${lacking} needs a value`, hints: [usage(lacking, flags)] }
  const [, numeric] = /^Parsing (--[\w-]+)/.exec(first) ?? []
  const [, expected, value] = /^Expected (an integer.*) but received: (.*)$/.exec(rest[0] ?? '') ?? []
  if (numeric !== undefined && expected !== undefined) {
    return { message: `${numeric} must be ${expected}, not "${value}"`, hints: [] }
  }
  if (/^The following errors? occurred:$/.test(first)) return together(rest[0] ?? '')
  return { message: first.charAt(0).toLowerCase() + first.slice(1), hints: rest }
}

/** oclif's reason why flags do not go together. */
function together(reason: string): Mistake {
  const [, one, other] = /^--([\w-]+)=.* cannot also be provided when using --([\w-]+)$/.exec(reason) ?? []
  if (one !== undefined) return { message: `--${one} and --${other} cannot be combined`, hints: ['Omit one of them.'] }
  const [, owner, needed] = /^All of the following must be provided when using --([\w-]+): (.+)$/.exec(reason) ?? []
  if (owner === undefined || needed === undefined) return { message: reason, hints: [] }
  return { message: `--${owner} needs ${needed}`, hints: [`Add ${needed}, or omit --${owner}.`] }
}

function usage(name: string, flags: FlagInput): string {
  const flag = flags[name]
  const value = flag?.type === 'option' && typeof flag.helpValue === 'string' ? flag.helpValue : '<value>'
  return `--${name} ${value}: ${flag?.description ?? ''}`
}

const helpLine = 'See more help with --help'
