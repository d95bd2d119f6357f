import { classify } from '../classify.ts'
import type { Finding } from '../monitor.ts'

/** One check that could not look; the others go on. */
export type Problem = {
  readonly see: 'problem'
  readonly check: string
  readonly address: string
  readonly cause: unknown
  readonly afterMs: number
}

export function judgeProblem({ check, address, cause, afterMs }: Problem): Finding {
  const { fault, message, details } = classify(cause, address, afterMs)
  return { check, level: 'fail', fault, message, details, address }
}
