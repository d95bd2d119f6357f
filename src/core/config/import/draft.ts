import { isMap, type Raw } from '../../base/settings/index.ts'
import { type Declined, declined, hideSecrets, isSecretName, variableIn } from './declined.ts'

/** How one setting of another tool is read: a reason why it is not, or a function that returns one or undefined. */
export type Rule = Declined | ((value: unknown, draft: Draft, path: string) => Declined | undefined)
/** SettingRules by the path of a setting, such as `client.timeout`, or by several paths with blanks between them. */
export type SettingRules = Readonly<Record<string, Rule>>

/** A tool whose files svc reads. */
export type ToolFormat = {
  readonly title: string
  readonly recognizes: (file: Raw) => boolean
  /** The sections that `drafts` reads. */
  readonly reads: readonly string[]
  readonly drafts: (file: Raw) => readonly Draft[]
}

/** Whether a value says nothing: some tools write all their settings, also those that are not set. */
export const isUnset = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  value === '' ||
  (typeof value === 'object' && Object.keys(value).length === 0)

/** Where registries such as that of uk register a level below. */
const secondLevel = /^(?:ac|co|com|edu|gov|ne|net|or|org)\.[a-z]{2}$/

/** Settings that another monitor of the same request does not repeat. */
const expectations = new Set(['contains', 'matches', 'json', 'header'])

/** One entry of a file of another tool, and what becomes of it. */
export class Draft {
  /** The entry as comments name it: `endpoint "shop"`. */
  readonly title: string
  readonly name: string
  /** Settings of its first monitor. Without a kind, the entry becomes none. */
  readonly main: Record<string, unknown> = {}
  /** Further monitors; those without a kind have the request of the first. */
  readonly others: Record<string, unknown>[] = []
  readonly tags: string[] = []
  /** Settings of the host block. */
  readonly host: Record<string, unknown> = {}
  /** The parameters of a profile with their types, if the entry becomes one. */
  parameters: Raw | undefined
  /** Parts of the entry that are not expressed, by reason. */
  readonly notes = new Map<Declined, string[]>()
  /** Why its monitors are comments, if they are. */
  problem: string | undefined
  readonly secrets: { readonly reference: { env: string }; readonly isOwn: boolean; readonly setting: string }[] = []
  /** The settings of the entry, for rules that depend on another. */
  readonly entry: Raw

  constructor(title: string, name: unknown, entry: unknown) {
    this.title = `${title} "${String(name)}"`
    this.name = String(name)
    this.entry = isMap(entry) ? entry : {}
  }

  decline(what: string, why: Declined): void {
    this.notes.set(why, [...(this.notes.get(why) ?? []), what])
  }

  /** Makes the entry a comment, because a monitor without this would check something else. */
  disable(what: string, why: Declined): undefined {
    this.problem ??= `${what}: ${declined[why]}`
  }

  set(setting: string, value: unknown): undefined {
    if (value !== undefined) this.main[setting] = value
  }

  /** Adds a monitor of the domain in which the host of some settings is: its last two labels, or three. */
  domain({ query, host, url }: Raw, expires?: object): undefined {
    const hosts = [query, host, URL.parse(String(url))?.hostname].filter((one) => typeof one === 'string')
    const labels = hosts[0]?.split('.') ?? []
    const domain = labels.slice(secondLevel.test(labels.slice(-2).join('.')) ? -3 : -2).join('.')
    this.others.push({ kind: 'domain', domain, ...(expires && { expires }) })
  }

  /** A reference to a secret in place of its value, which is neither kept nor shown. */
  secret(setting: string, value: unknown): { readonly env: string } {
    const own =
      `${this.name} ${setting}`
        .toUpperCase()
        .match(/[A-Z0-9]+/g)
        ?.join('_') ?? 'SECRET'
    const variable = variableIn(value)
    const reference = { env: variable ?? own.replace(/^(?=\d)/, 'SVC_') }
    this.secrets.push({ reference, isOwn: variable === undefined, setting })
    return reference
  }

  /** Adds an expectation of the answer: to the first monitor, or to another one that sends the same request. */
  expect(setting: string, value: unknown, key?: string): undefined {
    const before = this.main[setting] as Raw | undefined
    const isTaken = key === undefined ? before !== undefined : Object.hasOwn(before ?? {}, key)
    if (isTaken) this.others.push({ [setting]: key === undefined ? value : { [key]: value } })
    else this.main[setting] = key === undefined ? value : { ...before, [key]: value }
  }

  monitors(): readonly Raw[] {
    if (this.main['kind'] === undefined) return []
    const common = { name: this.name, ...(this.tags.length === 0 ? {} : { tags: this.tags }) }
    const { kind, ...main } = this.main
    const request = Object.fromEntries(Object.entries(this.main).filter(([key]) => !expectations.has(key)))
    const others = this.others.map((one) => ({ ...(one['kind'] === undefined ? request : {}), ...one }))
    return [{ kind, ...common, ...main }, ...others.map(({ kind: own, ...one }) => ({ kind: own, ...common, ...one }))]
  }

  /** Applies rules to all settings of the entry: one without a rule gets a line too, so that none is dropped silently. */
  apply(rules: SettingRules, entry: Raw = this.entry, above = '', isOff = isUnset): this {
    for (const [key, value] of Object.entries(entry)) {
      const path = `${above}${key}`
      if (isOff(value)) continue
      const rule = Object.entries(rules).find(([paths]) => paths.split(' ').includes(path))?.[1]
      if (rule === undefined && isMap(value)) this.apply(rules, value, `${path}.`, isOff)
      else {
        const why = typeof rule === 'function' ? rule(value, this, path) : (rule ?? 'unknown')
        if (why !== undefined) this.decline(path, why)
      }
    }
    return this
  }
}

const same = (value: unknown): unknown => value
const set =
  (setting: string, convert: (value: unknown) => unknown = same): Rule =>
  (value, draft) =>
    draft.set(setting, convert(value))
const disable =
  (why: Declined): Rule =>
  (_, draft, path) =>
    draft.disable(path, why)

/** SettingRules that several tools share. */
export const to = {
  /** Sets a setting to the value, as it is or converted; undefined sets nothing. */
  set,
  /** Sets a setting of one kind, where the other tool has one for every kind. */
  setFor:
    (kind: string, setting: string, convert: (value: unknown) => unknown = same): Rule =>
    (value, draft) =>
      draft.main['kind'] === kind ? draft.set(setting, convert(value)) : undefined,
  /** Sets a setting where a flag is true. */
  whenTrue: (setting: string, value: unknown): Rule => set(setting, (flag) => (flag ? value : undefined)),
  secret:
    (setting: string): Rule =>
    (value, draft) =>
      draft.set(setting, draft.secret(setting, value)),
  file: (setting: string): Rule => set(setting, (file) => ({ file })),
  /** Makes the whole entry a comment. */
  disable,
  proxy: (value: unknown, draft: Draft) => {
    const url = URL.parse(String(value))
    if (!url) return draft.disable('proxy', 'template')
    if (url.username !== '') draft.set('proxyUsername', decodeURIComponent(url.username))
    if (url.password !== '') draft.set('proxyPassword', draft.secret('proxy password', ''))
    return draft.set('proxy', `${url.protocol}//${url.host}`)
  },
  /** svc does so anyway, or another rule has read it. */
  done: () => undefined,
  timeout: (unit: keyof typeof units): Rule => set('timeout', (value) => duration(milliseconds(value, unit))),
  /** svc runs a monitor every 5 s at most. */
  every: (unit: keyof typeof units): Rule => set('every', (it) => duration(Math.max(5_000, milliseconds(it, unit)))),
  method: (value: unknown, draft: Draft) =>
    /^(?:GET|HEAD|POST)$/.test(String(value)) ? draft.set('method', value) : draft.disable('method', 'method'),
  /** Request headers; the one that may hold a credential becomes `token`. */
  headers: (value: unknown, draft: Draft, path: string) => {
    for (const [name, written] of Object.entries(isMap(value) ? value : {})) {
      const text = String(written)
      const [, bearer] = /^authorization$/i.test(name) ? (/^Bearer\s+(\S+)$/i.exec(text) ?? []) : []
      if (!isSecretName(name) && hideSecrets(text) === text) draft.expect('headers', text, name)
      else if ('token' in draft.main || 'password' in draft.main) draft.disable(`${path}.${name}`, 'second credential')
      else {
        draft.set('token', draft.secret(bearer === undefined ? name : 'token', bearer ?? text))
        if (bearer === undefined) draft.set('tokenHeader', name)
      }
    }
    return undefined
  },
  /** OAuth 2.0, from the values of its settings. */
  oauth2: (draft: Draft, [tokenUrl, clientId, secret, scopes]: readonly unknown[]) =>
    draft.set('oauth2', {
      tokenUrl,
      clientId,
      clientSecret: draft.secret('client secret', secret),
      ...(isUnset(scopes) ? {} : { scopes: Array.isArray(scopes) ? scopes : String(scopes).split(' ') }),
    }),
  /** So many failures in a row, at this interval, are a confirmed fault. */
  confirm: (draft: Draft, failures: number, intervalMs: number) =>
    draft.set(
      'confirm',
      failures > 1 ? duration(Math.min(36e5, Math.max(5_000, (failures - 1) * intervalMs))) : undefined,
    ),
} as const

const units = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const
/** Milliseconds as svc.yaml has them: `90000` → `90s`. */
export function duration(ms: number): string {
  const whole = Math.max(1, Math.round(ms))
  const [unit = 'ms', size = 1] = Object.entries(units).find(([, one]) => whole % one === 0) ?? []
  return `${whole / size}${unit}`
}
/** The milliseconds of `1m30s`, as programs in Go write durations, or of a number with a unit of its own. */
export function milliseconds(value: unknown, unit: keyof typeof units = 'ms'): number {
  if (!Number.isNaN(Number(value))) return Number(value) * units[unit]
  const parts = [...String(value).matchAll(/(?<![\d.])([\d.]{1,20})(ms|h|m|s|d)/g)]
  return parts.reduce((sum, [, figure, of]) => sum + Number(figure) * units[of as keyof typeof units], 0)
}

/** A text as an expectation that is read neither as a pattern nor as a comparison. */
export const literal = (value: unknown): string =>
  /^(?:[<>=!]|\/.*\/[imsu]*$)/s.test(String(value)) ? `= ${String(value)}` : String(value)
export const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
/** A regular expression of Go as a pattern of svc, with the flags in front of it as JavaScript has them. */
export const pattern = (source: unknown): string => {
  const [, flags = '', rest = ''] = /^(?:\(\?([ims]+)\))?(.*)$/s.exec(String(source)) ?? []
  return `/${rest.replaceAll(/\\\/|\//g, '\\/')}/${flags}`
}
export const texts = (value: unknown): readonly string[] => (Array.isArray(value) ? value : [value]).map(String)
export const maps = (value: unknown): readonly Raw[] => (Array.isArray(value) ? value.filter(isMap) : [])
/** A name as a tag. */
export const tag = (name: unknown): string =>
  String(name)
    .replaceAll(/[^A-Za-z0-9_.-]+/g, '-')
    .slice(0, 63)

/** The host and the port of `tcp://db:5432` or `db:5432`. */
export function hostPort(written: unknown, usual?: number): Raw {
  const [, six, four = '', port = usual] =
    /^(?:\w+:\/\/)?(?:\[([^\]]+)\]|([^:/]*))(?::(\d+))?/.exec(String(written)) ?? []
  return { host: six ?? four, ...(port === undefined ? {} : { port: Number(port) }) }
}
