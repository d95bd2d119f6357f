/** Milliseconds for people: `14 ms`, `1.28 s`, `2.5 min`, `3 h`, `4 d`. */
export function showDuration(ms: number): string {
  const rounded = (value: number, digits: number): number => Number(value.toFixed(digits))
  if (ms < 999.5) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 59_995) return `${rounded(ms / 1_000, 2)} s`
  if (ms < 3_597_000) return `${rounded(ms / 60_000, 1)} min`
  if (ms < 48 * 3_600_000) return `${rounded(ms / 3_600_000, 1)} h`
  return `${rounded(ms / 86_400_000, 1)} d`
}
