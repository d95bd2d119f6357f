import type { Content } from '../../assert/content.ts'
import type { Result, Unreached } from '../../engine/index.ts'
import type { Chain } from '../../net/chain.ts'
import type { Hide } from '../../net/text.ts'
import type { Outcome } from './outcome.ts'

/** What became of the steps, before it is judged. Everything is by the step's name. */
export type StepSeen =
  | { readonly see: 'connect'; readonly address: string; readonly ms: number; readonly chain: Chain | undefined }
  | Answered
  | FtpVisited
  | Failed
  | { readonly see: 'not run'; readonly name: string; readonly because: string }
  | Unreached

export type Answered = {
  readonly see: 'answered'
  readonly name: string
  /** Of a cleanup: the step whose doing it undoes. */
  readonly undoes: string | undefined
  readonly address: string
  /** `DELETE /users/42`, without what is secret. */
  readonly asked: string
  readonly status: number
  /** Where a redirect points, fit to be shown. */
  readonly location: string | undefined
  readonly ms: number
  readonly content: Content
  /** What it is, held once against all that was expected in this run. */
  readonly outcome: Outcome
  /** How `until` waited: milliseconds and requests, this one included. */
  readonly waited: { readonly asked: number; readonly ms: number; readonly ended: 'over' | 'time' | 'most' } | undefined
  /** What could not be captured, and why. */
  readonly uncaptured: readonly string[]
  readonly signIn: boolean
  readonly allowed: readonly string[]
  readonly hide: Hide
}

export type FtpVisited = {
  readonly see: 'ftp'
  readonly name: string
  readonly address: string
  /** Of the ftp kind. */
  readonly results: readonly Result[]
  readonly hide: Hide
}

/** A step that could not be sent, or was not answered. */
export type Failed = {
  readonly see: 'failed'
  readonly name: string
  readonly undoes: string | undefined
  readonly address: string
  readonly asked: string
  readonly cause: unknown
  readonly afterMs: number
  readonly hide: Hide
}
