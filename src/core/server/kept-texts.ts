/** How many texts are kept: for callers who see different details, in both formats. */
const keptAtMost = 8

/** Keeps texts that are long to write, as long as they are of the identical objects. */
export class KeptTexts {
  /** The latest first. */
  #entries: readonly { readonly of: readonly unknown[]; readonly text: string }[] = []

  /** The text of these objects and values, which `write` writes when it is not kept. */
  of(parts: readonly unknown[], write: () => string): string {
    const same = this.#entries.find(
      ({ of }) => of.length === parts.length && of.every((part, at) => part === parts[at]),
    )
    const entry = same ?? { of: parts, text: write() }
    this.#entries = [entry, ...this.#entries.filter((other) => other !== entry)].slice(0, keptAtMost)
    return entry.text
  }
}
