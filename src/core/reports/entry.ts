import type { HealthCheckResponse, ResponseStatus, RunDocument } from '../protocol/index.ts'

/** Why there is no answer, reduced to an allow-list of fields: the content of `{"error": …}`. */
export type ReportedError = {
  /** The ErrorCode, e.g. `Unreachable`. */
  readonly code: string
  readonly exitCode: number
  readonly message: string
  /** The target of the call, for people. */
  readonly target?: string | undefined
  /** What to do next, one line each. The last line is the next step. */
  readonly hints: readonly string[]
  /** The ResponseStatus of a remote server, if it sent one. */
  readonly responseStatus?: ResponseStatus | undefined
}

/** The answer of one target for one server type, or why there is none. */
export type Entry = {
  /** The target, for people: a URL, a profile and its URL, or this machine. */
  readonly Target: string
  readonly ServerType: string
  readonly ExecutionMode: string
  readonly ExitCode: number
  readonly Response?: HealthCheckResponse | undefined
  /** The run behind the response. Absent when the server sent none. */
  readonly Run?: RunDocument | undefined
  readonly Error?: ReportedError | undefined
}

/** A report format of health answers: a pure function, shared by `--output` and the server's `?format=`. */
export type Report = {
  readonly name: string
  /** The Content-Type over HTTP. */
  readonly contentType: string
  readonly render: (entries: readonly Entry[]) => string
  /** Its readers ignore the body of a 503, so over HTTP it implies SuppressErrorCodes (F5). */
  readonly impliesSuppress?: true
}
