/**
 * The candidate that a mistyped word most likely means: the same but for letter case, one that it
 * begins, or one within a few slips (a letter missing, added, wrong or swapped with its neighbour).
 */
export function suggest(word: string, candidates: readonly string[]): string | undefined {
  const typed = word.toLowerCase()
  if (typed.length > 64) return undefined
  const begun = candidates.filter((candidate) => typed.length >= 2 && candidate.toLowerCase().startsWith(typed))
  if (begun.length === 1) return begun[0]
  const allowed = typed.length <= 3 ? 1 : typed.length <= 7 ? 2 : 3
  let best: { readonly candidate: string; readonly slips: number } | undefined
  for (const candidate of candidates) {
    const slips = distance(typed, candidate.toLowerCase())
    if (slips <= allowed && slips < candidate.length && slips < (best?.slips ?? Number.POSITIVE_INFINITY)) {
      best = { candidate, slips }
    }
  }
  return best?.candidate
}

/** Slips between two words (optimal string alignment). */
function distance(a: string, b: string): number {
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1]
      let slips = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1))
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (swapped) slips = Math.min(slips, (before[j - 2] ?? 0) + 1)
      row.push(slips)
    }
    before = last
    last = row
  }
  return last[b.length] ?? 0
}
