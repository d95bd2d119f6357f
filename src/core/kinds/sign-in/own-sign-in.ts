import { atMost, evaluateProblem, fail, ok, type Problem, type Result, warn } from '../../engine/index.ts'
import { Fault } from '../../errors.ts'
import { ProbeError } from '../../probe-error.ts'

export type SignInSeen =
  | { readonly see: 'timed'; readonly check: 'store' | 'look-up'; readonly ms: number }
  | { readonly see: 'hashed'; readonly toldApart: boolean; readonly ms: number }
  | { readonly see: 'busy' }
  | { readonly see: 'administrator'; readonly any: boolean }
  | { readonly see: 'none' }
  | Problem

/** Milliseconds. A hash costs some 30 ms on an idle machine; a sign-in that takes seconds is broken for its user. */
const threshold = { warn: 1_000, limit: 3_000 }
const address = 'own accounts'
const noAdmin = 'nobody here is Admin: svc users add NAME --role Admin'

export function evaluateSignIn(seen: SignInSeen): Result {
  switch (seen.see) {
    case 'timed': {
      const what = seen.check === 'store' ? 'the store of the accounts answered in' : 'an account is looked up in'
      return atMost({ check: seen.check, what, value: seen.ms, unit: 'duration', threshold })
    }
    case 'hashed':
      if (!seen.toldApart) return fail('password hash', 'internal', 'a right password is not told from a wrong one')
      return atMost({
        check: 'password hash',
        what: 'a password was hashed and checked, right and wrong, in',
        value: seen.ms,
        unit: 'duration',
        threshold,
      })
    case 'busy':
      return warn('password hash', 'too many sign-ins at once: further ones are refused for the moment')
    case 'administrator':
      return seen.any ? ok('administrator', 'there is an Admin who may sign in') : warn('administrator', noAdmin)
    case 'none':
      return fail('store', 'data', 'this svc has no accounts of its own')
    case 'problem':
      return evaluateProblem(seen)
  }
}

/** What was in the way of one question; a Fault of ours says it in its own words. */
export function ownProblem(check: string, error: unknown, afterMs: number): Problem {
  const cause = error instanceof Fault ? new ProbeError('internal', error.message, error.details.hints ?? []) : error
  return { see: 'problem', check, address, cause, afterMs }
}
