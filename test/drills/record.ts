import type { Fault } from './servers.ts'

/** One drill as the page prints it. */
export type DrillRecord = {
  readonly server: string
  readonly kind: string
  readonly fault: Fault
  /** What was planted, where that is not clear from the name of the fault. */
  readonly planted: string
  /** From the start of the program to its end. */
  readonly seconds: number
  readonly exit: number | null
  readonly sentence: string
  readonly step: string
}
