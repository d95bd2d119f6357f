/** The maximum length. Longer words are not typing errors, and the work grows with the square of the length. */
const maxLength = 64

/**
 * The candidate that was probably meant, in any letter case, or undefined. An error is a letter omitted, added,
 * replaced or swapped with its neighbor (Damerau–Levenshtein). Allows at most two errors, or a third of the word; one
 * in a word of up to three letters. An incomplete word counts as one error. Of equally
 * close candidates, one that needs no letter replaced wins, then the first.
 *
 * @example
 * ```ts
 * didYouMean('postgrse', ['mysql', 'postgres']) // 'postgres'
 * didYouMean('htp', ['ftp', 'http']) // 'http'
 * didYouMean('xyz', ['mysql', 'postgres']) // undefined
 * ```
 */
export function didYouMean(word: string, candidates: readonly string[]): string | undefined {
  const typed = word.toLowerCase()
  if (typed === '' || typed.length > maxLength) return undefined
  const limit = typed.length <= 3 ? 1 : Math.max(2, Math.floor(typed.length / 3))
  let best: { readonly candidate: string; readonly slips: number } | undefined
  for (const candidate of candidates) {
    const folded = candidate.toLowerCase()
    if (folded.length > maxLength) continue
    const isPrefix = typed.length >= 3 && folded.startsWith(typed) && folded !== typed
    const slips = isPrefix ? 1 : distance(typed, folded)
    // With as many errors as letters, any word could become any other.
    const errors = Math.floor(slips)
    if (errors <= limit && errors < folded.length && (!best || slips < best.slips)) best = { candidate, slips }
  }
  return best?.candidate
}

/**
 * The hint that names the candidate that was probably meant, if there is one.
 *
 * @example
 * ```ts
 * nearestHint('Sqll', ['App', 'Sql']) // ['Did you mean Sql?']
 * ```
 */
export function nearestHint(word: string, candidates: readonly string[]): readonly string[] {
  const nearest = didYouMean(word, candidates)
  return nearest === undefined ? [] : [`Did you mean ${nearest}?`]
}

/** More than nothing, and less than one error even for every letter of the longest word. */
const replaced = 1 / (2 * maxLength)

/** The restricted Damerau–Levenshtein distance: no letter is edited twice. A replaced letter counts a little more. */
function distance(a: string, b: string): number {
  let before: number[] = []
  let above = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1 + replaced
      const swap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row[j] = Math.min(
        (above[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (above[j - 1] ?? 0) + same,
        swap ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      )
    }
    before = above
    above = row
  }
  return above[b.length] ?? 0
}

/** The message for a name that no thing of its sort has. */
export function unknownName(name: string, names: readonly string[], what: string): string {
  const meant = didYouMean(name, names)
  const label = JSON.stringify(name.slice(0, 60))
  if (meant !== undefined) return `names ${label}, which is not a known ${what}: did you mean \`${meant}\`?`
  return `names ${label}, which is not a known ${what}: ${names.length === 0 ? 'none exists' : `use one of ${names.join(', ')}`}`
}
