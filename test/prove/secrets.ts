const token = /svc_(?:at|rt|ss|key)_[A-Za-z0-9_-]{10,}/g

/** The passwords and tokens of a store: those that requests present by a name, and all that were ever given out. */
export class Secrets {
  readonly #passwords: readonly string[]
  readonly #byName = new Map<string, string>()
  readonly #issued = new Set<string>()

  constructor(passwords: readonly string[]) {
    this.#passwords = passwords
  }

  register(name: string, secret: string): void {
    this.#byName.set(name, secret)
    this.#issued.add(secret)
  }

  /** Given out in an answer: from now on in no other. */
  give(secret: string): void {
    this.#issued.add(secret)
  }

  label(name: string): string {
    return this.#byName.get(name) ?? ''
  }

  /** A text with each `{{name}}` replaced by the secret of that name. */
  fill(text: string): string {
    return text.includes('{{') ? text.replace(/\{\{(\w+)\}\}/g, (whole, name) => this.#byName.get(name) ?? whole) : text
  }

  /** The secrets that a text holds. */
  in(text: string): readonly string[] {
    const tokens = text.includes('svc_') ? (text.match(token) ?? []) : []
    return [
      ...this.#passwords.filter((password) => text.includes(password)),
      ...tokens.filter((result) => this.#issued.has(result)),
    ]
  }
}

/** The tokens in a text, known or not, by their form. */
export const tokensIn = (text: string): readonly string[] => text.match(token) ?? []
