import { isAbsolute } from 'node:path'
import { didYouMean } from '../suggest.ts'
import { onlyVariableMistake, secretMistake, variableMistake, willFail } from './mistakes.ts'
import { envSecret, fileSecret, keychainSecret, type SecretSources } from './secret.ts'
import type {
  Every,
  FileForm,
  Negation,
  Problem,
  Secret,
  SecretForm,
  Setting,
  SettingsSpec,
  Threshold,
  ThresholdUnit,
  Values,
} from './setting.ts'
import { parseBytes, parseDuration, parsePercent, writeBytes, writeDuration, writeFigure } from './units.ts'

export type SettingsContext = SecretSources & {
  /** The command that lists the settings, for the message about an unknown one. */
  readonly listing?: string | undefined
  /**
   * Why a file cannot be used that svc will read, in words that follow its name, or undefined. Absent: files are not
   * examined.
   */
  readonly fileWarning?: ((file: NamedFile) => string | undefined) | undefined
}

/** A file that svc.yaml names, and what it has to contain: a secret, perhaps one that is sent in a `header` or `line`, is read from the folder of svc.yaml. */
export type NamedFile = { readonly path: string; readonly content: FileForm | SecretForm | 'secret' }

export type SettingsReading = {
  readonly problems: Problem[]
  readonly warnings: Problem[]
  readonly context: SettingsContext
}
/** The place of a value in the settings, and functions to report problems with it. */
export type At = {
  readonly reading: SettingsReading
  readonly in: (step: string | number) => At
  /** Returns undefined, so that a reader can report and return in one statement. */
  readonly report: (message: string) => undefined
  readonly warn: (message: string) => void
}

export const place = (path: readonly (string | number)[], reading: SettingsReading): At => ({
  reading,
  in: (step) => place([...path, step], reading),
  report: (message) => {
    reading.problems.push({ path, message })
    return undefined
  },
  warn: (message) => {
    reading.warnings.push({ path, message })
  },
})

/** A map from YAML. */
export type Raw = Readonly<Record<string, unknown>>
export const isMap = (value: unknown): value is Raw =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A setting of one type. */
export type Of<T extends Setting['type']> = Extract<Setting, { readonly type: T }>

/**
 * Whether a key may be shown although no setting has its name: a line of another file, read by mistake, may be a key with
 * a secret in it.
 *
 * @example
 * ```ts
 * isPlainKey('max-age') // true
 * isPlainKey('a b') // false
 * ```
 */
export const isPlainKey = (key: string): boolean => /^[A-Za-z_][\w.@/-]{0,63}$/.test(key)

/** The message for an unknown key. */
export function unknownKey(key: string, names: readonly string[]): string {
  const instead = insteadOf(key, names)
  if (instead !== undefined) return instead
  const meant = didYouMean(key, names)
  if (meant !== undefined) return `is not a setting here: did you mean \`${meant}\`?`
  return names.length === 0
    ? 'is not a setting here: remove it, there are none'
    : `is not a setting here: remove it, or use one of ${[...names].sort().join(', ')}`
}

/** More names than these do not help in a message. */
const maxListed = 15

/** Words of other programs and earlier versions, and the setting or section that has their meaning. */
const synonyms: Readonly<Record<string, string>> = {
  hostname: 'host',
  address: 'host',
  server: 'host',
  ip: 'host',
  uri: 'url',
  endpoint: 'url',
  login: 'username',
  pass: 'password',
  pwd: 'password',
  passwd: 'password',
  ssl: 'tls',
  threshold: 'latency',
  depends_on: 'dependsOn',
  quiet: 'silences',
}
const meaningOf = (key: string): string | undefined => (Object.hasOwn(synonyms, key) ? synonyms[key] : undefined)
/** The message for a key that has a synonym among the names. */
export function insteadOf(key: string, names: readonly string[]): string | undefined {
  const meaning = meaningOf(key)
  return meaning !== undefined && names.includes(meaning) ? `is not a setting here: write \`${meaning}\`` : undefined
}

const partsOfUrl: readonly string[] = [
  'host',
  'port',
  'user',
  'username',
  'database',
  'db',
  'dbname',
  'scheme',
  'tls',
  'ssl',
]

/** The message for an unknown setting of a monitor, or of a part of one. */
function unknownSetting(key: string, spec: SettingsSpec, { listing }: SettingsContext): string {
  const names = Object.keys(spec)
  const instead = insteadOf(key, names)
  if (instead !== undefined) return instead
  const url = spec['url']
  if (url?.type === 'url' && (partsOfUrl.includes(key) || meaningOf(key) === 'host')) {
    return `is part of \`url:\` here: ${url.doc.split('. ', 1)[0]}`
  }
  if (didYouMean(key, names) === undefined && names.length > maxListed && listing !== undefined) {
    return `is not a setting here: remove it; ${listing} lists the settings`
  }
  return unknownKey(key, names)
}

/**
 * A wrong value, described for a message.
 *
 * @example
 * ```ts
 * describe([1]) // 'a list'
 * ```
 */
export function describe(value: unknown): string {
  if (value === null || value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a map'
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value as number | boolean)
  return text.length > 42 ? `${text.slice(0, 40)}…` : text
}

export type SettingsRead<S> = {
  /** Valid only when there are no problems. */
  readonly values: Values<S>
  /** The names of the settings that are given; the others have their defaults. */
  readonly configured: ReadonlySet<string>
  readonly problems: readonly Problem[]
  /** The problems that cause a failure at run time unless they are fixed before, such as a missing secret. */
  readonly warnings: readonly Problem[]
}

/**
 * Reads a part of a parsed svc.yaml by a table of settings: validates every value, applies defaults, and converts units
 * (`5s`, `10GB`, `80%`) to base units. Reports every problem with its path and the remedy; a message completes that
 * path (`must be …`). Never throws, and never repeats a possible secret.
 */
export function readSettings<const S extends SettingsSpec>(
  spec: S,
  raw: unknown,
  context: SettingsContext,
): SettingsRead<S> {
  const problems: Problem[] = []
  const warnings: Problem[] = []
  const at = place([], { problems, warnings, context })
  const values = readFields(spec, raw ?? {}, at)
  const configured = new Set(
    isMap(raw) ? Object.keys(spec).filter((name) => Object.hasOwn(raw, nameIn(raw, name, spec))) : [],
  )
  return { values: (values ?? {}) as Values<S>, configured, problems, warnings }
}

/** The values of a table of settings, none of which is given. */
export const defaultsOf = (spec: SettingsSpec): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(spec)
      .map(([name, setting]) => [name, defaultOf(setting)] as const)
      .filter(([, value]) => value !== undefined),
  )

/** The value of a setting that is not given. Undefined if it has no default. */
export function defaultOf(setting: Setting): unknown {
  if (setting.type === 'group') return setting.hasDefaults ? defaultsOf(setting.fields) : undefined
  return 'default' in setting ? setting.default : undefined
}

/** Another word for a setting, which svc.yaml may use in its place: `user` for `username`. */
export function otherWord(name: string, spec: SettingsSpec): string | undefined {
  const other = name === 'username' ? 'user' : spec[name]?.otherWord
  return other === undefined || Object.hasOwn(spec, other) ? undefined : other
}

/** The name under which a map has a setting: its own, or the other word for it. */
function nameIn(raw: Raw, name: string, spec: SettingsSpec): string {
  const other = otherWord(name, spec)
  return other !== undefined && Object.hasOwn(raw, other) && !Object.hasOwn(raw, name) ? other : name
}

/** The value that a map has for a setting, under its own name or the other word for it. */
export function valueIn(raw: Raw, name: string, spec: SettingsSpec): unknown {
  const key = nameIn(raw, name, spec)
  return Object.hasOwn(raw, key) ? raw[key] : undefined
}

/** The value of `tls:` in the form of its kind. Every kind accepts `off`, `false` and `{mode: off}`, and its own words. */
function tlsValue(setting: Setting, value: unknown): unknown {
  const mode = value === false ? 'off' : value
  if (setting.type === 'group') return typeof mode === 'string' ? { mode } : value
  const only = isMap(mode) && Object.keys(mode).length === 1 && Object.hasOwn(mode, 'mode') ? mode['mode'] : mode
  if (setting.type === 'flag') return only === 'off' ? false : only === 'on' ? true : only
  return only === false ? 'off' : only
}

function readFields(spec: SettingsSpec, raw: unknown, at: At): Raw | undefined {
  if (!isMap(raw)) return at.report(`must be settings (\`name: value\`), not ${describe(raw)}`)
  const written = new Map(Object.keys(spec).map((name) => [name, nameIn(raw, name, spec)] as const))
  const accepted = new Set(written.values())
  for (const key of Object.keys(raw)) {
    if (!accepted.has(key)) at.in(key).report(unknownSetting(key, spec, at.reading.context))
  }
  const values: Record<string, unknown> = {}
  for (const [name, setting] of Object.entries(spec)) {
    const key = written.get(name) ?? name
    const here = at.in(key)
    const own = Object.hasOwn(raw, key) ? raw[key] : undefined
    const value = name === 'tls' && own !== undefined && own !== null ? tlsValue(setting, own) : own
    if (value === null) here.report('has no value: give it one, or remove the line')
    else if (value !== undefined) {
      values[name] = read(setting, value, here)
      const { needs } = setting
      if (needs !== undefined && raw[needs] === undefined) here.report(`needs \`${needs}:\` beside it`)
    } else if (setting.required) here.report(`is missing: add \`${name}:\` (${setting.doc})`)
    else if (defaultOf(setting) !== undefined) values[name] = defaultOf(setting)
  }
  reportCrossedBounds(spec, raw, values, at)
  return values
}

type Reader<T extends Setting['type']> = (value: unknown, setting: Of<T>, at: At) => unknown

const read = (setting: Setting, value: unknown, at: At): unknown =>
  (readers[setting.type] as (value: unknown, setting: Setting, at: At) => unknown)(value, setting, at)

/** One reader for each type of setting. It returns the value in base units, or undefined when it reported a problem. */
const readers: { readonly [T in Setting['type']]: Reader<T> } = {
  text: (value, setting, at) => {
    const read = (text: unknown, here: At): string | undefined => readPattern(text, setting, here)
    if (setting.negatable && isMap(value)) return readNegation(value, at, read)
    const written = read(value, at)
    if (written !== undefined && setting.absolute && !isAbsolute(written))
      return at.report('is not an absolute path: begin it with /')
    if (written !== undefined && setting.file) warnOfFile({ path: written, content: setting.file }, at)
    return written
  },
  url: (value, setting, at) =>
    setting.orSecret && isMap(value)
      ? readSecret(value, { type: 'secret', doc: setting.doc }, at)
      : readUrl(value, setting, at),
  number: readNumber,
  integer: (value, setting, at) =>
    typeof value === 'number' && !Number.isSafeInteger(value)
      ? at.report(`must be a whole number, not ${describe(value)}`)
      : readNumber(value, setting, at),
  flag: (value, _, at) =>
    typeof value === 'boolean' ? value : at.report(`must be true or false (without quotes), not ${describe(value)}`),
  countOrOff: (value, setting, at) => {
    if (value === 'off' || value === false) return 'off'
    if (typeof value === 'number' && Number.isSafeInteger(value)) return within(value, setting, String, at)
    return at.report(`must be a whole number or off, not ${describe(value)}`)
  },
  duration: (value, setting, at) => {
    const ms = readFigure(value, 'duration', at)
    return ms === undefined ? undefined : within(ms, setting, writeDuration, at)
  },
  bytes: (value, setting, at) => {
    const bytes = readFigure(value, 'bytes', at)
    return bytes === undefined ? undefined : within(bytes, setting, writeBytes, at)
  },
  secret: readSecret,
  choice: (value, setting, at) => {
    if (typeof value === 'string' && setting.values.includes(value)) return value
    const meant = typeof value === 'string' ? didYouMean(value, setting.values) : undefined
    const suggestion = meant === undefined ? '' : `: did you mean ${meant}?`
    return at.report(`must be one of ${setting.values.join(', ')}, not ${describe(value)}${suggestion}`)
  },
  texts: (value, setting, at) => {
    if (Array.isArray(value) && value.length === 0 && setting.needsOne)
      return at.report('is an empty list, which nothing meets: name one, or remove the line')
    if (Array.isArray(value)) return allText(value, setting, at)
    // A single text counts as a list of one.
    const one = plainText(value)
    return typeof one === 'string'
      ? allText([one], setting, at)
      : at.report(`must be a list of texts, not ${describe(value)}`)
  },
  map: (raw, setting, at) => {
    if (!isMap(raw)) return at.report(`must be a map (\`name: text\`), not ${describe(raw)}`)
    if (setting.secrets) {
      const entries = Object.entries(raw).map(([key, value]) => {
        return [key, readSecret(value, { type: 'secret', doc: setting.doc }, at.in(key))]
      })
      return Object.fromEntries(entries)
    }
    reportSameKeys(Object.keys(raw), setting, at)
    const read = (key: string, value: unknown, here: At): unknown =>
      setting.negatable && isMap(value)
        ? readNegation(value, here, (text, within) => readEntry(key, text, setting, within))
        : readEntry(key, value, setting, here)
    return Object.fromEntries(Object.entries(raw).map(([key, value]) => [key, read(key, value, at.in(key))]))
  },
  template: (value, setting, at) => readTemplate(value, setting, at),
  threshold: readThreshold,
  every: readEvery,
  group: (value, setting, at) => readFields(setting.fields, value, at),
  groups: (value, setting, at) => {
    if (!Array.isArray(value)) return at.report(`must be a list (lines that begin with "- "), not ${describe(value)}`)
    reportRepeatedNames(setting.fields, value, at)
    return value.map((item: unknown, index) => readFields(setting.fields, item, at.in(index)))
  },
}

/** A map with one of these keys alone is a reference to a secret. */
const isReference = (value: Raw): boolean => {
  const [key, ...others] = Object.keys(value)
  return key !== undefined && others.length === 0 && secretKinds.includes(key)
}

function readTemplate(value: unknown, setting: Of<'template'>, at: At): unknown {
  if (Array.isArray(value)) return value.map((item: unknown, index) => readTemplate(item, setting, at.in(index)))
  if (isMap(value)) {
    if (isReference(value)) return readSecret(value, { type: 'secret', doc: setting.doc }, at)
    const entries = Object.entries(value).map(([key, item]) => [key, readTemplate(item, setting, at.in(key))])
    return Object.fromEntries(entries)
  }
  const message = typeof value === 'string' ? setting.mistake?.(value) : undefined
  return message === undefined ? value : at.report(message)
}

/** Readers of reports know an entry by its name: of two with one name, they show one, and the other fails unseen. */
function reportRepeatedNames(fields: SettingsSpec, entries: readonly unknown[], at: At): void {
  if (!Object.hasOwn(fields, 'name')) return
  // Queues of two virtual hosts may have one name.
  const names = entries.map((entry) => (isMap(entry) ? JSON.stringify([entry['name'], entry['vhost']]) : undefined))
  const firstOf = new Map(names.map((name, index) => [name, index] as const).toReversed())
  for (const [index, entry] of entries.entries()) {
    const first = firstOf.get(names[index]) ?? index
    if (!isMap(entry) || typeof entry['name'] !== 'string' || first === index) continue
    at.in(index)
      .in('name')
      .report(`is ${describe(entry['name'])}, as in entry ${first + 1} of the list: give it another name`)
  }
}

function readText(value: unknown, at: At): string | undefined {
  if (typeof value === 'string') return /^[ \t]*$/.test(value) ? at.report('is empty: give it a value') : value
  // YAML has already turned 1.10 into the number 1.1, so numbers cannot be accepted as text.
  if (typeof value === 'number' || typeof value === 'boolean') return at.report('must be text: put it in quotes')
  return at.report(`must be text, not ${describe(value)}`)
}

/** In lists and maps, where numbers are common (`[200, 204]`), a whole number counts as text. */
const plainText = (value: unknown): unknown =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? String(value) : value

type Patterned = {
  readonly pattern?: RegExp
  readonly mistake?: (text: string) => string | undefined
  readonly doc: string
}
type Listed = Patterned & { readonly allowsEmpty?: true }

/** Text that matches the pattern of its setting, if that has one. */
function readPattern(value: unknown, setting: Patterned, at: At): string | undefined {
  const written = readText(value, at)
  if (written === undefined) return undefined
  const message = setting.mistake?.(written)
  if (message !== undefined) return at.report(message)
  if (setting.pattern?.test(written) ?? true) return written
  return at.report(`has the invalid value ${describe(written)}: ${setting.doc}`)
}

const allText = (value: readonly unknown[], setting: Listed, at: At): readonly string[] =>
  value.map((item, index) =>
    setting.allowsEmpty && item === '' ? '' : (readPattern(plainText(item), setting, at.in(index)) ?? ''),
  )

/** `{not: text}`. */
function readNegation(value: Raw, at: At, read: (text: unknown, at: At) => string | undefined): Negation | undefined {
  const [key = '', ...others] = Object.keys(value)
  if (key !== 'not' || others.length > 0) return at.report('must be text, or {not: text}')
  const not = read(value[key], at.in(key))
  return not === undefined ? undefined : { not }
}

const credentialHeader = /^(authorization|proxy-authorization|cookie)$/i

function readEntry(key: string, value: unknown, { mistake }: Of<'map'>, at: At): string {
  if (credentialHeader.test(key)) {
    at.report('contains a credential: use a setting that accepts {env: NAME} or {file: /path}')
    return ''
  }
  const written = value === '' || typeof value === 'boolean' ? String(value) : readText(plainText(value), at)
  if (written === undefined) return ''
  const message = mistake?.(written, key)
  if (message !== undefined) at.report(message)
  return written
}

function readNumber(value: unknown, setting: Of<'number' | 'integer'>, at: At): number | undefined {
  if (typeof value === 'string' && value.trim() !== '' && Number.isFinite(Number(value))) {
    return at.report('must be a number: remove the quotes')
  }
  if (typeof value !== 'number' || !Number.isFinite(value)) return at.report(`must be a number, not ${describe(value)}`)
  return within(value, setting, String, at)
}

type Range = { readonly min?: number; readonly max?: number }

/** A figure within the range of its setting. `write` formats it as in svc.yaml. */
function within(value: number, range: Range, write: (value: number) => string, at: At): number | undefined {
  const { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = range
  if (value >= min && value <= max) return value
  const is = `is ${write(value)}`
  if (range.min === undefined) return at.report(`${is}: give ${write(max)} or less`)
  return at.report(
    `${is}: give ${range.max === undefined ? `${write(min)} or more` : `${write(min)} to ${write(max)}`}`,
  )
}

const passwordParameter = /^(password|passwd|pwd|sslpassword)$/i

function readUrl(value: unknown, setting: Of<'url'>, at: At): string | undefined {
  const written = readText(value, at)
  if (written === undefined) return undefined
  const schemes = setting.protocols.map((protocol) => protocol.split(':', 1)[0] ?? '')
  const url = URL.canParse(written) ? new URL(written) : undefined
  const [, authority = ''] = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(written) ?? []
  const inHost = variableMistake(authority.replace(/^.*@/s, '')) ?? onlyVariableMistake(written)
  if (inHost !== undefined) return at.report(inHost)
  // Do not repeat the value: it may contain a password.
  if (!url) {
    const scheme = schemes[0] ?? 'https'
    const why = written.includes('://')
      ? 'is not a URL'
      : `has no scheme (${schemes.map((s) => `${s}://`).join(' or ')})`
    return at.report(`${why}: write it like ${scheme}://host:port/path`)
  }
  const scheme = url.protocol.slice(0, -1)
  if (!schemes.includes(scheme)) {
    return at.report(`begins with ${scheme}:, but must begin with ${schemes.map((s) => `${s}://`).join(' or ')}`)
  }
  if (url.password !== '' || [...url.searchParams.keys()].some((key) => passwordParameter.test(key))) {
    return at.report('contains a password: remove it, and refer to it with {env: NAME} or {file: /path}')
  }
  if (url.hostname === '' && !url.searchParams.has('host')) return at.report('has no host: write it after the //')
  return written
}

/** `$NAME` or `${NAME}` in capitals, as people name variables. Other texts that begin with `$` may be passwords. */
const shellVariable = /^\$\{?([A-Z][A-Z0-9_]*)\}?$/
const envName = /^[A-Za-z_][A-Za-z0-9_]*$/
const secretShape = 'write {env: NAME}, {file: /path} or {keychain: name}'
/** The names that `svc secrets set` accepts. */
export const secretName = /^[A-Za-z0-9_.@-]{1,100}$/

const secretKinds: readonly string[] = ['env', 'file', 'keychain']

function readSecret(value: unknown, { form }: Of<'secret'>, at: At): Secret | undefined {
  if (!isMap(value)) {
    const [, name] = (typeof value === 'string' ? shellVariable.exec(value) : null) ?? []
    if (name !== undefined)
      return at.report(`contains the variable $${name}, which svc does not replace: write {env: ${name}}`)
    return at.report(`must refer to a secret, not contain it: ${secretShape}`)
  }
  const keys = Object.keys(value)
  const [kind] = keys
  const name = kind === undefined ? undefined : value[kind]
  if (keys.length > 1 && keys.every((key) => secretKinds.includes(key))) {
    return at.report(`names its secret twice, by ${keys.join(' and ')}: keep one of them`)
  }
  if (keys.length !== 1 || (kind !== 'env' && kind !== 'file' && kind !== 'keychain')) {
    const meant = keys.length === 1 ? didYouMean(kind ?? '', secretKinds) : undefined
    if (meant !== undefined)
      return at.report(`must refer to a secret by env, file or keychain: did you mean \`${meant}\`?`)
    return at.report(`must name one variable, one file or one keychain secret: ${secretShape}`)
  }
  if (typeof name !== 'string' || name.trim() === '') return at.in(kind).report(`must be a name: ${secretShape}`)
  const { context } = at.reading
  if (kind === 'env') {
    const [, variable] = shellVariable.exec(name) ?? []
    if (variable !== undefined) return at.in(kind).report(`must be the name alone, without $: write {env: ${variable}}`)
    // Do not repeat the value: it may be the secret itself, written here by mistake.
    if (!envName.test(name)) return at.in(kind).report("must be a variable's name (letters, digits, _), not a value")
    const written = context.env[name]
    if (!written) at.warn(`names the variable ${name}, which is not set here: ${willFail}`)
    else if (secretMistake(written, form)) at.warn(`names the variable ${name}, ${secretMistake(written, form)}`)
    return envSecret(name, context)
  }
  if (kind === 'keychain') {
    // Not repeated, for the same reason.
    return secretName.test(name)
      ? keychainSecret(name, context)
      : at.in(kind).report('must be a name in `svc secrets list` (letters, digits, _ . @ -), not a value')
  }
  if (/[\0\r\n]/.test(name)) return at.in(kind).report('must be a path on one line')
  const mistake = variableMistake(name)
  if (mistake !== undefined) return at.in(kind).report(mistake)
  if (name.startsWith('~')) return at.in(kind).report('begins with "~", which is not expanded: write the absolute path')
  warnOfFile({ path: name, content: form ?? 'secret' }, at)
  return fileSecret(name, context)
}

function warnOfFile(file: NamedFile, at: At): void {
  const warning = at.reading.context.fileWarning?.(file)
  if (warning !== undefined) at.warn(`names the file ${file.path}, ${warning}`)
}

/** Of two keys that mean the same, one would have no effect. */
function reportSameKeys(keys: readonly string[], { sameKey }: Of<'map'>, at: At): void {
  if (sameKey === undefined) return
  const meanings = keys.map(sameKey)
  for (const [index, key] of keys.entries()) {
    const first = keys[meanings.indexOf(meanings[index] ?? '')]
    if (first !== key) at.in(key).report(`means the same as ${describe(first)}: keep one of them`)
  }
}

/**
 * Whether a setting that svc.yaml gives asks for anything: not `off`, an empty list, or a map that leaves everything to
 * the defaults. `raw` is the setting as written, and `value` as `readSettings` returns it.
 */
export function demandsSomething(raw: unknown, value: unknown): boolean {
  const isEmpty = (one: unknown): boolean => (Array.isArray(one) || isMap(one)) && Object.keys(one).length === 0
  return !isEmpty(raw) && (!isMap(value) || Object.values(value).some((part) => part !== undefined))
}

/** A threshold in base units: `{warn, limit}`, a bare limit, or `off`. */
export function readThreshold(value: unknown, setting: Of<'threshold'>, at: At): Threshold | undefined {
  if (value === 'off') return {}
  if (!isMap(value)) return { limit: readFigure(value, setting.unit, at) }
  // If only one half is given, the other keeps its default: changing the warning must not remove the limit.
  const both = setting.default ?? {}
  for (const key of Object.keys(value)) {
    if (key !== 'warn' && key !== 'limit') at.in(key).report(unknownKey(key, ['warn', 'limit']))
  }
  const half = (name: 'warn' | 'limit'): number | undefined => {
    const written = Object.hasOwn(value, name) ? value[name] : undefined
    if (written === undefined) return both[name]
    return written === 'off' ? undefined : readFigure(written, setting.unit, at.in(name))
  }
  const read = { warn: half('warn'), limit: half('limit') }
  if ('warn' in value && 'limit' in value && crossed(read, setting)) {
    return at.report('would fail before it warns: swap warn and limit')
  }
  return read
}

/** Whether a value fails before it warns. The defaults show which side of a threshold is a fault, or `isMinimum` does. */
function crossed({ warn, limit }: Threshold, { default: usual = {}, isMinimum }: Of<'threshold'>): boolean {
  if (warn === undefined || limit === undefined) return false
  if (usual.warn !== undefined && usual.limit !== undefined) return (limit - warn) * (usual.limit - usual.warn) < 0
  return isMinimum === true ? limit > warn : isMinimum === undefined && limit < warn
}

/** Of a minimum above the maximum of the same figure, every value breaks one. */
function reportCrossedBounds(spec: SettingsSpec, raw: Raw, values: Raw, at: At): void {
  const figureOf = (value: unknown): unknown => (isMap(value) ? value['limit'] : value)
  for (const [name, setting] of Object.entries(spec)) {
    const notAbove = 'notAbove' in setting ? setting.notAbove : undefined
    if (notAbove === undefined || !Object.hasOwn(raw, name)) continue
    const [least, most] = [figureOf(values[name]), figureOf(values[notAbove])]
    if (typeof least === 'number' && typeof most === 'number' && least > most)
      at.in(name).report(`is ${least}, above \`${notAbove}:\` (${most}), so that every value breaks one of them`)
  }
}

const examples: Record<ThresholdUnit, string> = {
  duration: '250ms, 5s, 2m, 48h or 30d',
  bytes: '512B, 64KiB, 512MB or 10GB',
  percent: '80% or 80',
  days: '20 or 20d',
  count: '100',
  ratio: '0.5',
}
const maxMs = 10 * 365 * 86_400_000

const modes = ['Basic', 'Standard', 'Advanced'] as const

/** How often something runs by itself: a duration for Standard, a map of modes, or `off`. */
function readEvery(value: unknown, { least }: Of<'every'>, at: At): Every | undefined {
  if (value === 'off' || value === false) return 'off'
  if (!isMap(value)) {
    if (typeof value !== 'string' && typeof value !== 'number') {
      return at.report(`must be a duration, off, or a map such as {Standard: 1m, Advanced: 1h}, not ${describe(value)}`)
    }
    const Standard = readInterval(value, least.Standard, at)
    return Standard === undefined ? undefined : { Standard }
  }
  for (const key of Object.keys(value)) {
    if (!modes.some((mode) => mode === key)) at.in(key).report(unknownKey(key, modes))
  }
  const entries = modes.flatMap((mode) => {
    if (!Object.hasOwn(value, mode)) return []
    const written = value[mode]
    const off = written === 'off' || written === false
    const interval = off ? ('off' as const) : readInterval(written, least[mode], at.in(mode))
    return interval === undefined ? [] : [[mode, interval] as const]
  })
  return Object.fromEntries(entries)
}

function readInterval(written: unknown, least: number, at: At): number | undefined {
  const interval = readFigure(written, 'duration', at)
  if (interval === undefined || interval >= least) return interval
  return at.report(`is less than ${writeDuration(least)}: give ${writeDuration(least)} or more, or off`)
}

/** Reads a duration (in ms), bytes, percent, days, a count or a ratio, as written in svc.yaml. */
export function readFigure(raw: unknown, unit: ThresholdUnit, at: At): number | undefined {
  const bare = typeof raw === 'number'
  if (bare && (unit === 'duration' || unit === 'bytes')) {
    const [first, second] = unit === 'duration' ? ['s', 'ms'] : ['KiB', 'MB']
    return at.report(`is ${raw}, without a unit: write ${raw}${first} or ${raw}${second}`)
  }
  const value = bare ? raw : typeof raw === 'string' ? parsed(raw, unit) : undefined
  if (value === undefined || !Number.isFinite(value) || value < 0) {
    return at.report(`must be written like ${examples[unit]}, not ${describe(raw)}`)
  }
  if (unit === 'duration' && value > maxMs) return at.report(`is longer than ${writeFigure(maxMs, unit)}: give less`)
  return value
}

function parsed(written: string, unit: ThresholdUnit): number | undefined {
  if (unit === 'duration') return parseDuration(written)
  if (unit === 'bytes') return parseBytes(written)
  if (unit === 'percent') return parsePercent(written)
  const ms = unit === 'days' ? parseDuration(written) : undefined
  return ms === undefined ? undefined : ms / 86_400_000
}
