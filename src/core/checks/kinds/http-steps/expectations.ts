import type { Expectation } from '../../../base/settings/index.ts'
import { type Content, evaluateAssertions, evaluateText } from '../../assert/content.ts'
import { mapText, PatternBudget, statusAllowed } from '../../assert/expectation.ts'
import { fail, type Result } from '../../engine/index.ts'
import {
  type CleanupStep,
  isSigned,
  isValue,
  type RequestStep,
  type Step,
  type StepsSettings,
  statusesOf,
} from './settings.ts'
import type { StepValues } from './values.ts'

/** Expected values by path, for both types of document. */
export type Documents = { readonly json?: Texts; readonly xml?: Texts; readonly contains?: Expectation | undefined }
type Texts = Readonly<Record<string, Expectation>> | undefined

/** The expectations of an answer that ends the polling of `until`. */
type Ending = Documents & { readonly status: readonly string[] | undefined }
/** The expectations of an answer that `fails` declares as a failure, and its meaning. */
export type Meaning = Documents & { readonly says: string }

const isXml = (path: string): boolean => /^(?:count\()?\//.test(path)

/** Splits the paths of `expect` by their form into those for JSON and those for XML. */
function documentsOf(expect: Texts): Documents {
  const entries = Object.entries(expect ?? {})
  const part = (xml: boolean): Texts => {
    const some = entries.filter(([path]) => isXml(path) === xml)
    return some.length === 0 ? undefined : Object.fromEntries(some)
  }
  return { json: part(false), xml: part(true) }
}

/** The expectations of a step as configured. */
function expectedOf(step: RequestStep): Documents {
  const { json, xml } = documentsOf(step.expect)
  return { json: both(step.json, json), xml: both(step.xml, xml), contains: step.contains }
}
const both = (one: Texts, other: Texts): Texts => (one && other ? { ...one, ...other } : (one ?? other))

const endingOf = ({ until }: Step): Ending | undefined =>
  until && { ...documentsOf(until.expect), status: until.status }

const meaningsOf = ({ fails }: Step): readonly Meaning[] =>
  (fails ?? []).map(({ expect, says }) => ({ ...documentsOf(expect), says }))

/** All expectations that a step has of an answer. */
export const expectationsOf = (step: RequestStep | Step): readonly Documents[] => [
  expectedOf(step),
  ...('until' in step ? [endingOf(step) ?? {}] : []),
  ...('fails' in step ? meaningsOf(step) : []),
]

/** Replaces the placeholders with the values of this run. */
const filledWith = <D extends Documents>(documents: D, values: StepValues): D => ({
  ...documents,
  json: filled(documents.json, values),
  xml: filled(documents.xml, values),
  contains: documents.contains && mapText(documents.contains, (one) => (isValue(one) ? values.fill(one, String) : one)),
})

const filled = (expected: Texts, values: StepValues): Texts =>
  expected &&
  Object.fromEntries(
    // Written as a comparison, so that a value is never interpreted as a pattern.
    Object.entries(expected).map(([path, expectation]) => [
      path,
      mapText(expectation, (one) => (isValue(one) ? `=${values.fill(one, String)}` : one)),
    ]),
  )

/** The assertions that fail, and those that cannot be evaluated. */
const unmetIn = (content: Content, { json, xml, contains }: Documents): readonly Result[] =>
  [
    ...(contains === undefined ? [] : [evaluateText('step', content, { contains })]),
    ...evaluateAssertions(content, { json, xml }),
  ].filter(({ status }) => status !== 'ok')

/** The outcome of an answer. Every outcome except `unfinished` ends the polling of `until`. */
export type ExpectationOutcome =
  /** The server refused the credential of the request. */
  | { readonly type: 'refusal' }
  | { readonly type: 'unexpected status' }
  /** A failure that `fails` declares. */
  | { readonly type: 'failure'; readonly meaning: Meaning }
  /** A pattern timed out, so that the outcome is unknown. `why` follows the words "cannot be evaluated: ". */
  | { readonly type: 'undecided'; readonly why: string }
  /** Polling of `until` continues. */
  | { readonly type: 'unfinished'; readonly mismatch: Result }
  /** The final answer, with the assertions that it does not meet. */
  | { readonly type: 'final'; readonly firstMismatch: readonly Result[] }

type Answer = { readonly content: Content; readonly status: number; readonly values: StepValues }

/** Evaluates an answer once, against all expectations of a step. */
export function outcomeOf(
  step: Step | CleanupStep,
  settings: StepsSettings,
  { content, status, values }: Answer,
): ExpectationOutcome {
  const isAllowed = statusAllowed(status, statusesOf(step))
  if (isRefusal(step, settings, status, isAllowed)) return { type: 'refusal' }
  if (!isAllowed) return { type: 'unexpected status' }
  const budget = new PatternBudget()
  if ('signIn' in step) {
    const meanings = meaningsOf(step).map((meaning) => filledWith(meaning, values))
    const meaning = budget.within(() => meanings.find((one) => unmetIn(content, one).length === 0))
    if (meaning) return { type: 'failure', meaning }
    const ending = endingOf(step)
    const mismatch = ending && budget.within(() => endingMismatch(content, status, filledWith(ending, values)))
    if (budget.timedOut !== undefined) return { type: 'undecided', why: budget.timedOut }
    if (mismatch) return { type: 'unfinished', mismatch }
  }
  return { type: 'final', firstMismatch: budget.within(() => unmetIn(content, filledWith(expectedOf(step), values))) }
}

function isRefusal(step: Step | CleanupStep, settings: StepsSettings, status: number, isAllowed: boolean): boolean {
  // A refused credential is never sent again, whatever the step allows: the server counts each attempt.
  const repeats = 'until' in step && step.until !== undefined
  if (isSigned(step, settings) && status === 401) return repeats || !isAllowed
  // Some servers refuse with 400 or 422; 404 and 5xx say nothing about the account.
  return 'signIn' in step && step.signIn && [400, 401, 403, 422].includes(status) && !isAllowed
}

/** Why an answer does not end the polling, or undefined. */
function endingMismatch(content: Content, status: number, ending: Ending): Result | undefined {
  if (ending.status && !statusAllowed(status, ending.status)) {
    return fail('step', 'data', `the answer was ${status} (expected ${ending.status.join(', ')})`)
  }
  return unmetIn(content, ending)[0]
}
