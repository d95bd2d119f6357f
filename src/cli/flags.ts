import { boolean, custom } from '@oclif/core/flags'
import { Fault } from '../core/errors.ts'
import { ExecutionMode, ServerType } from '../core/protocol/index.ts'
import { didYouMean } from '../core/suggest.ts'

/** The value of a closed set, in any letter case; a mistyped one is answered with the nearest and the list. */
export function oneOf<V extends string>(what: string, values: readonly V[], input: string, listed: string): V {
  const known = values.find((value) => value.toLowerCase() === input.toLowerCase())
  if (known !== undefined) return known
  if (input === '') throw new Fault('Usage', `--${what} is empty`, { hints: [`${listed}: ${values.join(' ')}`] })
  const nearest = didYouMean(input, values)
  const hints = [...(nearest ? [`Did you mean ${nearest}?`] : []), `${listed}: ${values.join(' ')}`]
  throw new Fault('Usage', `unknown --${what} "${input}"`, { hints })
}

type Described = { readonly description: string; readonly helpGroup?: string }

export const modeFlag = custom<ExecutionMode>({
  char: 'm',
  helpValue: `<${ExecutionMode.values.join('|')}>`,
  parse: async (input) => oneOf('mode', ExecutionMode.values, input, 'Modes'),
})

const typesAndAll = [...ServerType.values, 'all'] as const
export type TypeOrAll = (typeof typesAndAll)[number]
/** Repeatable, not greedy. */
export const typesFlag = (described: Described) =>
  custom<TypeOrAll>({
    char: 't',
    helpValue: '<App|Sql|…>',
    parse: async (input) => oneOf('type', typesAndAll, input, 'Types'),
  })({ multiple: true, multipleNonGreedy: true, ...described })

const colours = ['auto', 'always', 'never'] as const
export const colourFlag = custom<(typeof colours)[number]>({
  helpValue: `<${colours.join('|')}>`,
  parse: async (input) => oneOf('color', colours, input, 'Values'),
})({ description: 'When to colour (auto: on a terminal)', helpGroup: 'GLOBAL' })

/** A text that must not be empty: an unset CI variable must not count as "not given". */
export const text = (what: string) =>
  custom<string>({
    parse: async (input) => {
      if (input.trim() !== '') return input
      throw new Fault('Usage', `--${what} is empty`, { hints: ['Leave the flag out, or give it a value.'] })
    },
  })

const units: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, min: 60_000, h: 3_600_000 }

/** `500ms`, `5s`, `2m`, `1h` → milliseconds. */
export function parseDuration(what: string, input: string): number {
  const [, figure, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|min|h)$/.exec(input.trim()) ?? []
  const ms = Number(figure) * (units[unit ?? ''] ?? Number.NaN)
  if (!(ms > 0)) {
    throw new Fault('Usage', `--${what} "${input}" is no duration`, {
      hints: [`Write a number and its unit, for example --${what} 500ms, 5s, 2m or 1h.`],
    })
  }
  return ms
}
export const durationFlag = (what: string) =>
  custom<number>({ helpValue: '<5s|2m|…>', parse: async (input) => parseDuration(what, input) })

/** A wait of `maxMs` milliseconds at most; `0` and `0s` mean none. */
export const delayFlag = (what: string, maxMs: number) =>
  custom<number>({
    helpValue: '<10s|1m|…>',
    parse: async (input) => {
      const ms = /^0(?:ms|s|m|min|h)?$/.test(input.trim()) ? 0 : parseDuration(what, input)
      if (ms <= maxMs) return ms
      throw new Fault('Usage', `--${what} "${input}" is too long`, { hints: [`At most ${maxMs / 60_000}m.`] })
    },
  })

/** Where a command acts, and with what. */
export const connectionFlags = {
  server: text('server')({
    description: 'URL of a server (SVC_SERVER); without it the profile, else this machine',
    helpGroup: 'TARGET',
  }),
  profile: text('profile')({ description: 'Act at the server of this profile (SVC_PROFILE)', helpGroup: 'TARGET' }),
  local: boolean({ description: 'Run here, whatever SVC_SERVER and the profile say', helpGroup: 'TARGET' }),
  store: text('store')({ description: "The embedded store's file (SVC_STORE)", helpGroup: 'TARGET' }),
  config: text('config')({ description: 'The svc.yaml to use (SVC_CONFIG)', helpGroup: 'TARGET' }),
  'ca-file': text('ca-file')({
    description: 'PEM file of a private certificate authority (SVC_CA_FILE)',
    helpGroup: 'TARGET',
  }),
  'insecure-http': boolean({ description: 'Allow plain http to another machine', helpGroup: 'TARGET' }),
} as const

/** An argument that must be there. `what` is its name in the help, e.g. NAME. */
export function required(value: string | undefined, what: string): string {
  if (value !== undefined && value.trim() !== '') return value
  throw new Fault('Usage', `${what} is ${value === undefined ? 'missing' : 'empty'}`, {
    hints: ['svc COMMAND --help shows the arguments of a command.'],
  })
}

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * A variable that is set but empty is an error, never "not given": a gate in CI must not turn green
 * by checking its own runner because a secret is missing.
 */
export function variable(env: Environment, name: string): string | undefined {
  const value = env[name]
  if (value !== undefined && value.trim() === '') {
    throw new Fault('Usage', `${name} is set but empty`, { hints: [`Give ${name} a value, or unset it.`] })
  }
  return value
}
