import { sanitizeText } from '../../core/sanitize.ts'
import type { ProcessEnvironment } from '../io/io.ts'

/** Bytes of output that are remembered, so that a secret is recognized even if the reported part begins inside it. */
const maxRemembered = 64 * 1024
/** What is reported of it: characters and lines. */
const maxReported = 4_000
const maxLines = 50

/** The end of a program's output, in bounded memory. */
export class OutputTail {
  #parts: Buffer[] = []
  #length = 0
  #isCut = false

  add(part: Buffer): void {
    this.#parts.push(part.subarray(-maxRemembered))
    this.#length += Math.min(part.length, maxRemembered)
    this.#isCut ||= part.length > maxRemembered
    while (this.#length - (this.#parts[0]?.length ?? 0) >= maxRemembered) {
      this.#length -= this.#parts.shift()?.length ?? 0
      this.#isCut = true
    }
  }

  /** The last lines, sanitized and with secrets redacted as far as they can be recognized. Empty without output. */
  report(env: ProcessEnvironment): string {
    const text = Buffer.concat(this.#parts).toString('utf8')
    // Its first line may begin inside a secret.
    const whole = this.#isCut ? text.slice(text.indexOf('\n') + 1) : text
    const lines = sanitizeText(redact(whole, env)).split('\n').slice(-maxLines)
    return sanitizeText(lines.join('\n').slice(-maxReported).toWellFormed())
  }
}

const redacted = '[redacted]'
/** Names of variables that hold secrets. */
const secretName = /PASS|SECRET|TOKEN|CREDENTIAL|_KEY$|^KEY$|APIKEY/i
/** A shorter value is also a word of ordinary output. */
const minSecret = 6

const patterns: readonly (readonly [RegExp, string])[] = [
  // Tokens and keys of svc.
  [/svc_(?:at|rt|ss|key)_[\w-]{8,200}/g, redacted],
  [/\b((?:Bearer|Basic)\s{1,4})[\w.~+/=-]{8,8000}/gi, `$1${redacted}`],
  // password=…, "token": "…", --secret …
  [
    /((?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key)["']?\s{0,4}[=:]\s{0,4}["']?)[^\s"',;&]{1,2000}/gi,
    `$1${redacted}`,
  ],
  [/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]{0,16000}(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?/g, redacted],
]

/**
 * Replaces secrets: the values of variables whose names say that they hold one, tokens of svc, credentials of HTTP, and
 * values behind `password=` and its like. A secret of another form is not recognized.
 */
export function redact(text: string, env: ProcessEnvironment): string {
  const values = Object.entries(env)
    .flatMap(([name, value = '']) => (secretName.test(name) && value.trim().length >= minSecret ? [value.trim()] : []))
    .sort((a, b) => b.length - a.length)
  const withoutValues = values.reduce((rest, value) => rest.replaceAll(value, redacted), text)
  return patterns.reduce((rest, [pattern, instead]) => rest.replace(pattern, instead), withoutValues)
}
