import { Fault } from '../core/errors.ts'

const units: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }
/** Ten years. */
const longest = 3_650 * 86_400_000

/** `90d`, `12h`, `2w` → milliseconds. Throws Fault `Usage`. */
export function parseLifetime(what: string, input: string): number {
  const [, figure, unit] = /^(\d{1,6})(m|h|d|w)$/.exec(input.trim()) ?? []
  const ms = Number(figure) * (units[unit ?? ''] ?? Number.NaN)
  if (ms > 0 && ms <= longest) return ms
  throw new Fault(
    'Usage',
    ms > longest ? `--${what} ${input} is longer than 10 years` : `--${what} "${input}" is no lifetime`,
    {
      hints: [`Write a whole number and its unit, for example --${what} 12h, 90d or 52w.`],
    },
  )
}
