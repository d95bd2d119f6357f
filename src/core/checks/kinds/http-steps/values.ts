import { randomBytes } from 'node:crypto'
import type { ConfiguredFiles } from '../../../base/files/index.ts'
import { createRedactor, type Redact } from '../../../base/net/text.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import type { StepsSettings } from './settings.ts'

const placeholder = /\$\{([A-Za-z]\w*)\}/g
/** Names of the predefined values. Every run generates new `probe` and `probePassword` values. */
export const builtInNames = ['username', 'password', 'token', 'basic', 'probe', 'probePassword'] as const
/** Maximum characters of a captured value: enough for a long token, but not for a whole page. */
export const maxValue = 8 * 1024
/** Longer secrets are also redacted in pieces of this length, because a message may contain only half of one. */
const pieceLength = 256

/** Maximum number of values of unfinished answers to remember for redaction. */
const maxPassing = 100

/** A secret in all encodings in which it is sent, and its pieces. */
const formsOf = (value: string): readonly string[] =>
  [value, encodeURIComponent(value.toWellFormed()), inJson(value), inXml(value)].flatMap((form) => {
    // A shorter last piece could equal ordinary text, and no message shows that much of an answer.
    const whole = form.length > pieceLength ? Math.floor(form.length / pieceLength) : 0
    return [form, ...Array.from({ length: whole }, (_, at) => form.slice(at * pieceLength, (at + 1) * pieceLength))]
  })

/** The names that a template uses. */
export const namesIn = (template: string): readonly string[] =>
  [...template.matchAll(placeholder)].flatMap(([, name]) => name ?? [])

/** Text in a template that looks like a placeholder but is not one, or undefined. */
export const strayPlaceholder = (template: string): string | undefined =>
  /\$\{[^}]{0,40}\}?/.exec(template.replace(placeholder, ''))?.[0]

/** The values of one run, both configured and captured. */
export class StepValues {
  readonly #values = new Map<string, string>()
  readonly #secrets = new Set<string>()
  /** Captured values of unfinished answers, the latest last. */
  readonly #passing = new Set<string>()
  #redact: Redact = createRedactor([])

  /** Sets a value. A secret value is redacted in every encoding in which it is sent. */
  set(name: string, value: string, secret: boolean): void {
    this.#values.set(name, value)
    if (secret) this.hush(value)
  }

  /** Redacts a text from now on. */
  hush(value: string): void {
    for (const form of formsOf(value)) this.#secrets.add(form)
    this.#hidden()
  }

  /**
   * Redacts texts that are never sent. Keeps a limited number of them, because the server chooses how many there are.
   */
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

  /** The first name in a template that has no value yet. */
  missing(template: string): string | undefined {
    return namesIn(template).find((name) => !this.#values.has(name))
  }

  /**
   * Replaces the placeholders of a template, with values encoded by `encode`. Throws ProbeError if a value is missing.
   */
  fill(template: string, encode: (value: string) => string): string {
    return template.replace(placeholder, (_, name: string) => {
      const value = this.#values.get(name)
      if (value === undefined) throw new ProbeError('data', `\${${name}} has no value`)
      return encode(value)
    })
  }
}

/** Reads the secrets. Throws ProbeError if one cannot be read. */
export async function firstValues(settings: StepsSettings, files: ConfiguredFiles): Promise<StepValues> {
  const values = new StepValues()
  const { username } = settings
  const password = await settings.password?.reveal(files)
  const token = await settings.token?.reveal(files)
  if (username !== undefined) values.set('username', username, false)
  if (password !== undefined) values.set('password', password, true)
  if (token !== undefined) values.set('token', token, true)
  if (username !== undefined && password !== undefined) {
    values.set('basic', Buffer.from(`${username}:${password}`).toString('base64'), true)
  }
  values.set('probe', `svc-probe-${randomBytes(6).toString('hex')}`, false)
  for (const [name, value] of Object.entries(settings.values ?? {})) values.set(name, value, false)
  // Contains all types of characters, for servers that require them.
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
