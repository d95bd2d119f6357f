import { type Hide, nothingHidden, quoted, said } from './text.ts'

/** Patterns see no more than this many characters: what a pattern costs grows with what it reads. */
export const patternCap = 64 * 1024
/** Milliseconds of processor time after which a pattern is given up: a nested quantifier would otherwise run for hours. */
const patternMs = 250
/** Milliseconds, the longest that one try takes: nothing else happens in this process meanwhile. */
const longestTryMs = 2_000

const slashed = /^\/(.*)\/([imsu]*)$/s
const comparison = /^(>=|<=|!=|==|=|>|<)\s*(.*)$/s

/** True for `/…/`, optionally with flags: what settings take for a regular expression. */
export const isPattern = (text: string): boolean => slashed.test(text)

/**
 * Whether a regular expression, `/…/flags` or bare, matches the first 64 KiB of a text. A pattern
 * that does not compile or does not end in time is said so, in words that follow "the text".
 */
export function unmatched(text: string, pattern: string): string | undefined {
  const [, source = pattern, flags = ''] = slashed.exec(pattern) ?? []
  const shown = said(pattern, 80)
  let expression: RegExp
  try {
    expression = new RegExp(source, flags)
  } catch {
    return `cannot be judged: ${shown} is not a regular expression`
  }
  try {
    const seen = bounded('pattern.test(text)', { pattern: expression, text: text.slice(0, patternCap) })
    return seen === true ? undefined : `does not match ${shown}`
  } catch (error) {
    const advice = error instanceof StarvedError ? '' : ', so it backtracks; write it without nested repeats'
    return `cannot be judged: ${shown} ${endless(error)}${advice}`
  }
}

/**
 * Runs a script that tests patterns, and throws when they do not end. Nothing but this timeout stops a
 * regular expression in Node, and it counts what the clock on the wall does: where a busy machine left
 * this thread too little of that, the script gets another try, with twice the time. Throws
 * StarvedError when not even the longest try was enough to tell.
 */
function bounded(script: string, sandbox: object): unknown {
  const { runInNewContext } = process.getBuiltinModule('node:vm')
  for (let ms = patternMs; ms <= longestTryMs; ms *= 2) {
    const before = process.threadCpuUsage()
    try {
      return runInNewContext(script, sandbox, { timeout: ms })
    } catch (error) {
      const { user, system } = process.threadCpuUsage(before)
      const timedOut = (error as { readonly code?: unknown }).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
      // Some systems count a thread's time by ticks of 16 ms.
      if (!timedOut || (user + system) / 1000 >= patternMs - 50) throw error
    }
  }
  throw new StarvedError()
}
class StarvedError extends Error {}

const endless = (error: unknown): string =>
  error instanceof StarvedError
    ? `got less than ${patternMs} ms of processor time in ${longestTryMs} ms: this machine is too busy`
    : `did not end within ${patternMs} ms`

/**
 * Holds a text against what the configuration expects of it: `/pattern/`, `>= 3` (also `>`, `<`,
 * `<=`, `!=`, `=`), or the text itself. Undefined when it is met, else what is wrong, in words that
 * follow the name of the thing: `is "2", expected >= 3`. `hide` takes secrets out of what is shown.
 */
export function unmet(actual: string, expectation: string, hide: Hide = nothingHidden): string | undefined {
  const shown = quoted(hide(actual), 80)
  if (isPattern(expectation)) {
    const problem = unmatched(actual, expectation)
    return problem === undefined ? undefined : `is ${shown} and ${problem}`
  }
  const [, operator, operand = ''] = comparison.exec(expectation) ?? []
  if (operator === undefined) return equal(actual, expectation, shown)
  if (operator === '=' || operator === '==') return equal(actual, operand, shown)
  if (operator === '!=') return actual === operand ? `is ${shown}, which it must not be` : undefined
  const left = actual.trim() === '' ? Number.NaN : Number(actual)
  const right = operand.trim() === '' ? Number.NaN : Number(operand)
  const holds =
    (operator === '>=' && left >= right) ||
    (operator === '<=' && left <= right) ||
    (operator === '>' && left > right) ||
    (operator === '<' && left < right)
  if (holds) return undefined
  return `is ${shown}, expected ${said(expectation, 80)}${Number.isNaN(left) ? ' (not a number)' : ''}`
}

/**
 * `unmet` for many texts of one peer: a pattern sees all of them in one go, and is given up for all of
 * them together. Undefined for those that meet it. Throws UnjudgedError when the pattern was given up.
 */
export function unmetEach(
  actuals: readonly string[],
  expectation: string,
  hide: Hide,
): readonly (string | undefined)[] {
  const [, source = '', flags = ''] = slashed.exec(expectation) ?? []
  if (actuals.length < 2 || !isPattern(expectation)) return actuals.map((actual) => unmet(actual, expectation, hide))
  let seen: readonly boolean[]
  try {
    const texts = actuals.map((actual) => actual.slice(0, patternCap))
    const sandbox = { pattern: new RegExp(source, flags), texts }
    seen = bounded('texts.map((text) => pattern.test(text))', sandbox) as boolean[]
  } catch (error) {
    const why = error instanceof SyntaxError ? 'is not a regular expression' : endless(error)
    throw new UnjudgedError(`cannot be judged: ${said(expectation, 80)} ${why}`)
  }
  return actuals.map((actual, index) =>
    seen[index] === true ? undefined : `is ${quoted(hide(actual), 80)} and does not match ${said(expectation, 80)}`,
  )
}

/** A pattern that was given up: nothing is known of what it was held against. */
export class UnjudgedError extends Error {
  override readonly name = 'UnjudgedError'
}

const equal = (actual: string, expected: string, shown: string): string | undefined =>
  actual === expected ? undefined : `is ${shown}, expected ${quoted(expected, 80)}`

/**
 * Whether an HTTP status is among those allowed: `200`, `2xx`, `200-299`, `<500`. Throws a
 * RangeError that names an entry it cannot read.
 */
export function statusAllowed(status: number, allowed: readonly string[]): boolean {
  return allowed.some((entry) => {
    const text = entry.replaceAll(' ', '')
    if (/^[1-5]\d\d$/.test(text)) return status === Number(text)
    if (/^[1-5]xx$/i.test(text)) return Math.floor(status / 100) === Number(text[0])
    const range = /^(\d{3})-(\d{3})$/.exec(text)
    if (range) return status >= Number(range[1]) && status <= Number(range[2])
    const below = /^<(\d{3})$/.exec(text)
    if (below) return status < Number(below[1])
    throw new RangeError(`status ${quoted(entry, 20)} is none of 200, 2xx, 200-299, <500`)
  })
}
