import type { HealthCheckResponse, ResponseStatus, RunDocument } from '../protocol/index.ts'

/** A failure to get an answer at all, from an allow-list: what `{"error": …}` prints. */
export type ReportedError = {
  /** The ErrorCode, e.g. `Unreachable`. */
  readonly code: string
  readonly exitCode: number
  readonly message: string
  /** Where the call went, for people. */
  readonly target?: string | undefined
  /** What to do next, one line each; the last is the next step. */
  readonly hints: readonly string[]
  /** What a remote server said, when it said it in the protocol's own form. */
  readonly responseStatus?: ResponseStatus | undefined
}

/** One server type asked at one target: an answer, or why there is none. */
export type Entry = {
  /** Where it was asked, for people: a URL, a profile and its URL, this machine. */
  readonly Target: string
  readonly ServerType: string
  readonly ExecutionMode: string
  readonly ExitCode: number
  readonly Response?: HealthCheckResponse | undefined
  /** The run that the response is made from; absent where the server sent none. */
  readonly Run?: RunDocument | undefined
  readonly Error?: ReportedError | undefined
}

/** A format of health answers: a pure function, the same for `--output` and for the server's `?format=`. */
export type Report = {
  readonly name: string
  /** The Content-Type over HTTP. */
  readonly contentType: string
  readonly render: (entries: readonly Entry[]) => string
  /** Its readers drop the body of a 503: over HTTP it implies SuppressErrorCodes (F5). */
  readonly impliesSuppress?: true
}
