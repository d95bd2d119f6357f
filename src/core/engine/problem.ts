import { classify } from './classify.ts'
import type { Result } from './result.ts'

/** One check that could not look; the others go on. */
export type Problem = {
  readonly see: 'problem'
  readonly check: string
  readonly address: string
  readonly cause: unknown
  readonly afterMs: number
}

export function evaluateProblem({ check, address, cause, afterMs }: Problem): Result {
  const { fault, message, details } = classify(cause, address, afterMs)
  return { check, status: 'failed', fault, message, details, address }
}
