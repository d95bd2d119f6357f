import type { Content } from '../../assert/content.ts'
import { PatternBudget, statusAllowed } from '../../assert/expectation.ts'
import { fail, type Result } from '../../engine/index.ts'
import { type Ending, endingOf, expectedOf, filledWith, type Meaning, meaningsOf, unmetIn } from './expected.ts'
import { isSigned } from './request.ts'
import { allowedBy, type CleanupStep, type Step, type StepsSettings } from './settings.ts'
import type { StepValues } from './values.ts'

/** What an answer is. All but `unfinished` end the waiting of `until`. */
export type Outcome =
  /** The credential that it carried was refused. */
  | { readonly is: 'refused' }
  /** Its status is none that is well. */
  | { readonly is: 'unwanted' }
  /** A failure of its own, of `fails`. */
  | { readonly is: 'failure'; readonly meaning: Meaning }
  /** A pattern was given up: nobody knows which of them it is. Why, in words that follow "cannot be judged: ". */
  | { readonly is: 'unjudged'; readonly why: string }
  /** Not the last one of `until`. */
  | { readonly is: 'unfinished'; readonly lacks: Result }
  /** The one that counts, and what of it is not as expected. */
  | { readonly is: 'last'; readonly unmet: readonly Result[] }

type Heard = { readonly content: Content; readonly status: number; readonly values: StepValues }

/** Holds an answer, once, against all that a step says of it. */
export function outcomeOf(step: Step | CleanupStep, given: StepsSettings, { content, status, values }: Heard): Outcome {
  const allowed = statusAllowed(status, allowedBy(step))
  if (refuses(step, given, status, allowed)) return { is: 'refused' }
  if (!allowed) return { is: 'unwanted' }
  const budget = new PatternBudget()
  if ('signIn' in step) {
    const meanings = meaningsOf(step).map((meaning) => filledWith(meaning, values))
    const meaning = budget.within(() => meanings.find((one) => unmetIn(content, one).length === 0))
    if (meaning) return { is: 'failure', meaning }
    const ending = endingOf(step)
    const lacks = ending && budget.within(() => lackedBy(content, status, filledWith(ending, values)))
    if (budget.givenUp !== undefined) return { is: 'unjudged', why: budget.givenUp }
    if (lacks) return { is: 'unfinished', lacks }
  }
  return { is: 'last', unmet: budget.within(() => unmetIn(content, filledWith(expectedOf(step), values))) }
}

function refuses(step: Step | CleanupStep, given: StepsSettings, status: number, allowed: boolean): boolean {
  // A credential that was refused is not sent again, whatever the step allows: each time counts at the server.
  const repeats = 'until' in step && step.until !== undefined
  if (isSigned(step, given) && status === 401) return repeats || !allowed
  // 400 and 422 are how some say it; 404 and 5xx say nothing of the account.
  return 'signIn' in step && step.signIn && [400, 401, 403, 422].includes(status) && !allowed
}

/** Why an answer does not end the waiting, or undefined. */
function lackedBy(content: Content, status: number, ending: Ending): Result | undefined {
  if (ending.status && !statusAllowed(status, ending.status)) {
    return fail('step', 'data', `it was answered ${status}, and waited for ${ending.status.join(', ')}`)
  }
  return unmetIn(content, ending)[0]
}
