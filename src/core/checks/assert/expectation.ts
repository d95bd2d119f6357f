import { noRedaction, quote, type Redact, sanitize } from '../../base/net/text.ts'
import type { Expectation, Negation } from '../../base/settings/index.ts'
import { isLinear, linearTest } from './linear-pattern.ts'

/** Maximum number of characters that patterns read: the cost of a pattern grows with its input. */
export const patternCap = 64 * 1024
/**
 * Milliseconds of processor time for a pattern that RE2 cannot run: a nested quantifier would otherwise run for hours.
 */
const patternMs = 250
/**
 * Milliseconds of processor time for all patterns of one answer: a peer must not decide how long they take together.
 */
const answerMs = 1_000
/** Maximum milliseconds of one try: nothing else runs in this process meanwhile. */
const maxTryMs = 2_000

const slashed = /^\/(.*)\/([imsu]*)$/s
const comparison = /^(>=|<=|!=|==|=|>|<)\s*(.*)$/s

/** The time that all patterns applied to one answer may take together. */
export class PatternBudget {
  #ms = 0
  #timedOut: string | undefined

  /**
   * The first pattern that was given up, in words that follow "cannot be evaluated: ". The other patterns are not tried
   * then.
   */
  get timedOut(): string | undefined {
    return this.#timedOut
  }

  /** Runs `evaluate`, which must be synchronous, and returns its result. All patterns tried meanwhile count here. */
  within<T>(evaluate: () => T): T {
    budgets.push(this)
    try {
      return evaluate()
    } finally {
      budgets.pop()
    }
  }

  /**
   * Runs `attempt`, which tries one pattern; `label` shows it as written. Throws PatternBudgetError when no time is
   * left, or the error of `attempt`.
   */
  spend<T>(label: string, attempt: () => T): T {
    if (this.#timedOut !== undefined)
      throw new PatternBudgetError('was not tried, as another pattern for this answer timed out')
    const before = processorMs()
    try {
      if (this.#ms > answerMs)
        throw new PatternBudgetError(`was not tried, as those before it took more than ${answerMs} ms`)
      return attempt()
    } catch (error) {
      this.#timedOut = timedOut(label, error)
      throw error
    } finally {
      this.#ms += processorMs() - before
    }
  }
}
/** A stack: the last budget is that of the answer being evaluated. */
const budgets: PatternBudget[] = []

/** `PatternBudget.within` for callers that need only the result. */
export const withPatternBudget = <T>(evaluate: () => T): T => new PatternBudget().within(evaluate)

/**
 * True for `/…/`, optionally with flags: settings treat such texts as regular expressions.
 *
 * @example
 * ```ts
 * isPattern('/^ok$/i') // true
 * isPattern('ok') // false
 * ```
 */
export const isPattern = (text: string): boolean => slashed.test(text)

/**
 * Why a regular expression, `/…/flags` or bare, is invalid, or undefined. `{nonce}` in it counts as text.
 *
 * @example
 * ```ts
 * patternProblem('/^ok$/') // undefined
 * ```
 */
export function patternProblem(pattern: string): string | undefined {
  const [, source = pattern, flags = ''] = slashed.exec(pattern) ?? []
  try {
    new RegExp(source.replaceAll('{nonce}', '0'), flags)
    return undefined
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^.*: /s, '') : ''
    return `${sanitize(pattern, 80)} is not a regular expression (${sanitize(why, 80)})`
  }
}

/**
 * Why a valid regular expression, `/…/flags` or bare, can take more than linear time, or undefined. RE2 cannot run it, so
 * a peer's text can make its check fail by using up the time.
 */
export function patternWarning(pattern: string): string | undefined {
  const [, source = pattern, flags = ''] = slashed.exec(pattern) ?? []
  if (patternProblem(pattern) !== undefined || isLinear(source.replaceAll('{nonce}', '0'), flags)) return undefined
  return (
    'is matched by backtracking, because it has look-around, a back-reference or another part that RE2 does not ' +
    `support: the check fails if matching takes more than ${patternMs} ms`
  )
}

/** Whether an expectation says what a value may not be. */
export const isNegation = (expectation: Expectation | undefined): expectation is Negation =>
  typeof expectation === 'object'

/** Whether an expectation of a header or of a value in a document says that there is to be none. */
export const isAbsence = (expectation: Expectation): boolean => isNegation(expectation) && expectation.not === 'present'

/** The text of an expectation, with or without `not:` before it. */
export const textIn = (expectation: Expectation): string => (isNegation(expectation) ? expectation.not : expectation)

/** The same expectation of another text. */
export const mapText = (expectation: Expectation, change: (text: string) => string): Expectation =>
  isNegation(expectation) ? { not: change(expectation.not) } : change(expectation)

/** An expectation for a message: `>= 3`, `not >= 3`. */
export const showExpectation = (expectation: Expectation): string =>
  `${isNegation(expectation) ? 'not ' : ''}${sanitize(textIn(expectation), 80)}`

/**
 * Why an expectation cannot be judged as it reads (an invalid pattern, a comparison without a number or with a pattern),
 * or undefined.
 *
 * @example
 * ```ts
 * expectationProblem('>= 3') // undefined
 * ```
 */
export function expectationProblem(written: Expectation): string | undefined {
  const expectation = textIn(written)
  if (isPattern(expectation)) return patternProblem(expectation)
  const [, operator = '', operand = ''] = comparison.exec(expectation) ?? []
  if (operator === '!=' && isPattern(operand)) return negationProblem(expectation, operand)
  const orders = /^[<>]=?$/.test(operator)
  return orders && (operand.trim() === '' || Number.isNaN(Number(operand)))
    ? `${sanitize(expectation, 80)} is not a comparison with a number: write >= 3, or use a /pattern/ for a text that begins this way`
    : undefined
}

/** `expectationProblem` for the setting that contains it: words that follow its path. */
export function expectationMistake(expectation: string): string | undefined {
  const problem = expectationProblem(expectation)
  return problem === undefined ? undefined : `cannot be judged: ${problem}`
}

/** `!=` compares with the literal text, which a value that the pattern matches never is: the check would always pass. */
const negationProblem = (expectation: string, pattern: string): string =>
  `${sanitize(expectation, 80)} compares with this text, not with the pattern: write {not: ${sanitize(pattern, 80)}}`

/**
 * Matches a regular expression, `/…/flags` or bare, against the first 64 KiB of a text. Returns undefined when it
 * matches, or behind `not:` does not, else the reason in words that follow "the text", also for a pattern that does not
 * compile or does not end in time. Throws UnseenError.
 *
 * @example
 * ```ts
 * patternMismatch('ready', '/^ready$/') // undefined
 * ```
 */
export function patternMismatch(text: string, expected: Expectation): string | undefined {
  const pattern = textIn(expected)
  const [, source = pattern, flags = ''] = slashed.exec(pattern) ?? []
  const label = sanitize(pattern, 80)
  let isMatch: boolean
  try {
    isMatch = matchEach(source, flags, [text], label)[0] === true
  } catch (error) {
    return `cannot be evaluated: ${unjudged(label, error)}`
  }
  if (!isNegation(expected)) return isMatch ? undefined : `does not match ${label}`
  if (isMatch) return `matches ${label}`
  if (text.length > patternCap) throw new UnseenError(longText)
  return undefined
}

/** Why a text does not contain what is expected, a text or /pattern/: words that follow "the text". Throws UnseenError. */
export const textMismatch = (text: string, expected: Expectation): string | undefined =>
  isPattern(textIn(expected)) ? patternMismatch(text, expected) : containsMismatch(text, expected)

/** Why a text lacks what it has to contain, or contains what it may not: words that follow "the text". */
export const containsMismatch = (text: string, expected: Expectation, redact: Redact = noRedaction) =>
  text.includes(textIn(expected)) === isNegation(expected)
    ? `${isNegation(expected) ? 'contains' : 'does not contain'} ${quote(redact(textIn(expected)), 80)}`
    : undefined

/**
 * Returns the search for a valid regular expression, `/…/flags`, in one text after another. It returns the groups of a
 * match, undefined without one, or in words that follow "the text", why that cannot be decided.
 */
export function groupFinder(pattern: string): (text: string) => readonly string[] | string | undefined {
  const [, source = '', flags = ''] = slashed.exec(pattern) ?? []
  const label = sanitize(pattern, 80)
  const compiled = new RegExp(source, flags)
  const matches = linearTest(source, flags)
  const budget = new PatternBudget()
  return (text) => {
    try {
      if (matches && !matches(text)) return undefined
      const find = (): unknown => runScript('pattern.exec(text)', { pattern: compiled, text })
      const groups = budget.spend(label, find) as readonly (string | undefined)[] | null
      return groups?.slice(1).map((group = '') => group)
    } catch (error) {
      return `cannot be evaluated: ${unjudged(label, error)}`
    }
  }
}

/**
 * Whether a regular expression matches the first 64 KiB of each text; `label` shows it as written. RE2 runs it in time
 * linear in the text, or, where RE2 cannot, JavaScript within a budget of processor time. Throws SyntaxError,
 * PatternStarvedError, PatternBudgetError, or the error of a script that does not end.
 */
function matchEach(source: string, flags: string, texts: readonly string[], label: string): readonly boolean[] {
  const pattern = new RegExp(source, flags)
  const starts = texts.map((text) => text.slice(0, patternCap))
  const attempt = (): readonly boolean[] => {
    const matches = linearTest(source, flags)
    if (matches) return starts.map(inTime(matches))
    return runScript('texts.map((text) => pattern.test(text))', { pattern, texts: starts }) as boolean[]
  }
  const budget = budgets.at(-1)
  return budget ? budget.spend(label, attempt) : attempt()
}

/** The test of one text, which throws PatternBudgetError when the texts before took too long together. */
function inTime(matches: (text: string) => boolean): (text: string) => boolean {
  const before = processorMs()
  return (text) => {
    if (processorMs() - before > answerMs)
      throw new PatternBudgetError(`was not tried on every value, as the first ones took more than ${answerMs} ms`)
    return matches(text)
  }
}

const unjudged = (label: string, error: unknown): string =>
  error instanceof SyntaxError ? `${label} is not a regular expression` : timedOut(label, error)

/**
 * Runs a script that tests a pattern. Throws when the script does not end. Only this timeout stops a regular expression
 * in Node, and it counts wall-clock time. If a busy machine left this thread too little processor time, the script is
 * tried again with twice the time. Throws PatternStarvedError when even the longest try was too short to tell.
 */
function runScript(script: string, sandbox: object): unknown {
  const { runInNewContext } = process.getBuiltinModule('node:vm')
  for (let ms = patternMs; ms <= maxTryMs; ms *= 2) {
    const before = processorMs()
    try {
      return runInNewContext(script, sandbox, { timeout: ms })
    } catch (error) {
      const timedOut = (error as { readonly code?: unknown }).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
      // Some systems measure a thread's time in ticks of 16 ms.
      if (!timedOut || processorMs() - before >= patternMs - 50) throw error
    }
  }
  throw new PatternStarvedError()
}
class PatternStarvedError extends Error {}
class PatternBudgetError extends Error {}

function processorMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

function endless(error: unknown): string {
  if (error instanceof PatternBudgetError) return error.message
  return error instanceof PatternStarvedError
    ? `got less than ${patternMs} ms of processor time in ${maxTryMs} ms: this machine is too busy`
    : `did not end within ${patternMs} ms`
}

function timedOut(label: string, error: unknown): string {
  const isItsOwn = !(error instanceof PatternStarvedError || error instanceof PatternBudgetError)
  return `${label} ${endless(error)}${isItsOwn ? ', so it backtracks; write it without nested repeats' : ''}`
}

/**
 * Compares a text with an expectation: `/pattern/`, `>= 3` (also `>`, `<`, `<=`, `!=`, `=`), or the text itself; behind
 * `not:`, none of these. Returns undefined when it is met, else what is wrong, such as `is "2", expected >= 3`: words that follow the name of
 * the value. `redact` removes secrets from them.
 */
export function describeMismatch(
  actual: string,
  expectation: Expectation,
  redact: Redact = noRedaction,
): string | undefined {
  const label = quote(redact(actual), 80)
  if (isNegation(expectation)) {
    try {
      return excludedEach([actual], expectation, redact)[0]
    } catch (error) {
      if (error instanceof UnjudgedError) return error.message
      throw error
    }
  }
  if (isPattern(expectation)) {
    const problem = patternMismatch(actual, expectation)
    return problem === undefined ? undefined : `is ${label} and ${problem}`
  }
  const [, operator, operand = ''] = comparison.exec(expectation) ?? []
  if (operator === undefined) return equal(actual, expectation, label)
  if (operator === '=' || operator === '==') return equal(actual, operand, label)
  if (operator === '!=') return actual === operand ? `is ${label}, which is not allowed` : undefined
  const left = numberIn(actual)
  const right = numberIn(operand)
  const holds =
    (operator === '>=' && left >= right) ||
    (operator === '<=' && left <= right) ||
    (operator === '>' && left > right) ||
    (operator === '<' && left < right)
  if (holds) return undefined
  return `is ${label}, expected ${sanitize(expectation, 80)}${Number.isNaN(left) ? ' (not a number)' : ''}`
}

/** A text as a number, NaN if it is none. Integers that a number does not hold are bigints, which compare with numbers. */
function numberIn(text: string): number | bigint {
  const value = text.trim() === '' ? Number.NaN : Number(text)
  const isLong = Number.isInteger(value) && !Number.isSafeInteger(value) && /^\s*-?\d+\s*$/.test(text)
  return isLong ? BigInt(text) : value
}

/**
 * `describeMismatch` for several texts of one peer. A pattern tests all of them in one script and is given up for all
 * of them together. Returns undefined for texts that meet the expectation. Throws UnjudgedError when the pattern was
 * given up.
 */
export function unmetEach(
  actuals: readonly string[],
  expectation: Expectation,
  redact: Redact,
): readonly (string | undefined)[] {
  if (isNegation(expectation)) return excludedEach(actuals, expectation, redact)
  const [, source = '', flags = ''] = slashed.exec(expectation) ?? []
  if (actuals.length === 0 || !isPattern(expectation))
    return actuals.map((actual) => describeMismatch(actual, expectation, redact))
  const label = sanitize(expectation, 80)
  let verdicts: readonly boolean[]
  try {
    verdicts = matchEach(source, flags, actuals, label)
  } catch (error) {
    const [one, ...others] = actuals
    const of = one === undefined || others.length > 0 ? '' : `is ${quote(redact(one), 80)} and `
    throw new UnjudgedError(`${of}cannot be evaluated: ${unjudged(label, error)}`)
  }
  return actuals.map((actual, index) =>
    verdicts[index] === true ? undefined : `is ${quote(redact(actual), 80)} and does not match ${label}`,
  )
}

/** Why texts are what `not:` excludes. Throws UnjudgedError, also for a text that a pattern does not read to its end. */
function excludedEach(actuals: readonly string[], expectation: Negation, redact: Redact) {
  const { not } = expectation
  const mismatches = unmetEach(actuals, not, redact)
  const problems = actuals.map((actual, index) => {
    const isNoNumber = /^[<>]/.test(not) && Number.isNaN(numberIn(actual))
    if (mismatches[index] !== undefined && !isNoNumber) return undefined
    const problem = `is ${quote(redact(actual), 80)}, expected ${showExpectation(expectation)}`
    return isNoNumber ? `${problem} (not a number)` : problem
  })
  const isCut = isPattern(not) && actuals.some((actual) => actual.length > patternCap)
  if (isCut && problems.every((problem) => problem === undefined)) throw new UnseenError(longText)
  return problems
}

/** Thrown when a pattern was given up, so that its result is unknown. */
export class UnjudgedError extends Error {
  override readonly name: string = 'UnjudgedError'
}

/** Thrown for a negation of something that was not read to its end: the rest may be what it excludes. */
export class UnseenError extends UnjudgedError {
  override readonly name = 'UnseenError'
}
const longText = `is longer than the ${patternCap / 1024} KiB that patterns read, so that \`not\` cannot be evaluated`

const equal = (actual: string, expected: string, label: string): string | undefined =>
  actual === expected ? undefined : `is ${label}, expected ${quote(expected, 80)}`

/**
 * Whether an HTTP status is allowed by entries such as `200`, `2xx`, `200-299`, `<500`. Throws a RangeError that names
 * an unreadable entry.
 *
 * @example
 * ```ts
 * statusAllowed(204, ['2xx']) // true
 * statusAllowed(404, ['200', '301']) // false
 * ```
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
    throw new RangeError(`status ${quote(entry, 20)} is not of the form 200, 2xx, 200-299 or <500`)
  })
}
