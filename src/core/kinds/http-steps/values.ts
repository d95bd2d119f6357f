import { randomBytes } from 'node:crypto'
import { createRedactor, type Redact } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import type { StepsSettings } from './settings.ts'

const placeholder = /\$\{([A-Za-z]\w*)\}/g
/** Names that are there from the beginning; `probe` and `probePassword` are made anew for every run. */
export const builtInNames = ['username', 'password', 'token', 'basic', 'probe', 'probePassword'] as const
/** Characters of a captured value: a long token fits, a page taken for one does not. */
export const maxValue = 8 * 1024
/** A secret longer than this is hidden piece by piece: what is shown of an answer may hold half of it. */
const pieceLength = 256

/** Values of unfinished answers that are remembered, so that none of them is shown. */
const maxPassing = 100

/** A secret in all the ways in which it is sent, and its pieces. */
const formsOf = (value: string): readonly string[] =>
  [value, encodeURIComponent(value.toWellFormed()), inJson(value), inXml(value)].flatMap((form) => {
    // The rest is too short to be told from ordinary text; no message reaches that far into an answer.
    const whole = form.length > pieceLength ? Math.floor(form.length / pieceLength) : 0
    return [form, ...Array.from({ length: whole }, (_, at) => form.slice(at * pieceLength, (at + 1) * pieceLength))]
  })

/** The names that a template needs. */
export const namesIn = (template: string): readonly string[] =>
  [...template.matchAll(placeholder)].flatMap(([, name]) => name ?? [])

/** What stands in a template like a placeholder and is none, or undefined. */
export const strayPlaceholder = (template: string): string | undefined =>
  /\$\{[^}]{0,40}\}?/.exec(template.replace(placeholder, ''))?.[0]

/** The values of one run: those given, and those captured on the way. */
export class StepValues {
  readonly #values = new Map<string, string>()
  readonly #secrets = new Set<string>()
  /** What unfinished answers held where a step captures something, the latest last. */
  readonly #passing = new Set<string>()
  #redact: Redact = createRedactor([])

  /** A value from here on; a secret one is shown nowhere, in none of the ways in which it is sent. */
  set(name: string, value: string, secret: boolean): void {
    this.#values.set(name, value)
    if (secret) this.hush(value)
  }

  /** Takes a text for a secret. */
  hush(value: string): void {
    for (const form of formsOf(value)) this.#secrets.add(form)
    this.#hidden()
  }

  /** Takes texts for secrets that are never sent, as far as so many are kept: the server chooses how many there are. */
  hushPassing(values: readonly string[]): void {
    for (const value of values) {
      this.#passing.delete(value)
      this.#passing.add(value)
    }
    for (const oldest of [...this.#passing].slice(0, -maxPassing)) this.#passing.delete(oldest)
    if (values.length > 0) this.#hidden()
  }

  #hidden(): void {
    this.#redact = createRedactor([...this.#secrets, ...[...this.#passing].flatMap(formsOf)])
  }

  readonly redact: Redact = (text) => this.#redact(text)

  /** The first name of a template that has no value yet. */
  missing(template: string): string | undefined {
    return namesIn(template).find((name) => !this.#values.has(name))
  }

  /** A template with its values, each as `encode` writes it. Throws ProbeError for one that is not there. */
  fill(template: string, encode: (value: string) => string): string {
    return template.replace(placeholder, (_, name: string) => {
      const value = this.#values.get(name)
      if (value === undefined) throw new ProbeError('data', `\${${name}} has no value`)
      return encode(value)
    })
  }
}

/** Reads the secrets. Throws ProbeError for one that cannot be read. */
export async function firstValues(settings: StepsSettings): Promise<StepValues> {
  const values = new StepValues()
  const { username } = settings
  const password = await settings.password?.reveal()
  const token = await settings.token?.reveal()
  if (username !== undefined) values.set('username', username, false)
  if (password !== undefined) values.set('password', password, true)
  if (token !== undefined) values.set('token', token, true)
  if (username !== undefined && password !== undefined) {
    values.set('basic', Buffer.from(`${username}:${password}`).toString('base64'), true)
  }
  values.set('probe', `svc-probe-${randomBytes(6).toString('hex')}`, false)
  for (const [name, value] of Object.entries(settings.values ?? {})) values.set(name, value, false)
  // Of every sort of character, for servers that want them.
  values.set('probePassword', `Aa1-${randomBytes(18).toString('base64url')}`, true)
  return values
}

export const inJson = (value: string): string => JSON.stringify(value).slice(1, -1)
const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
}
export const inXml = (value: string): string => value.replace(/[&<>"']/g, (one) => entities[one] ?? one)
