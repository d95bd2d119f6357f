import type { Fault } from './servers.ts'

/** One drill as the page prints it. */
export type DrillRecord = {
  readonly server: string
  readonly kind: string
  readonly fault: Fault
  /** The planted fault, where its name does not make it clear. */
  readonly planted: string
  /** From the start of the program to its end. */
  readonly seconds: number
  readonly exit: number | null
  readonly sentence: string
  readonly step: string
}
