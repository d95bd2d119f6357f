import type { ExecutionMode, HealthCheckResponse, Operation, Request, Response, ServerType } from './protocol/index.ts'

/**
 * Who calls. In process the caller is the OS account; over HTTP it is whoever the credentials of
 * the request say. The Service judges the caller it is given, wherever it runs.
 */
export type Caller =
  | { readonly kind: 'local'; readonly account: string }
  | {
      readonly kind: 'http'
      /** The peer's address, or the one that a trusted proxy reports. */
      readonly address: string
      readonly loopback: boolean
    }

/** What a transport may say beside an answer. */
export type AnswerFacts = {
  /** Seconds since the run behind this answer ended; 0 for a run made for this call. */
  readonly ageSeconds: number
  /** The id of the (possibly shared) run. */
  readonly runId: string
}

/** Which monitors and checks are wanted: patterns over monitor and check names. */
export type Selection = { readonly only: readonly string[]; readonly skip: readonly string[] }

export type Call = {
  readonly caller: Caller
  /** Absent: nobody is signed in. In process the OS account is Admin (P8). */
  readonly credential?: Credential | undefined
  readonly correlationId: string
  readonly signal: AbortSignal
  /** True when the caller does not accept a shared earlier answer (`Cache-Control: no-cache`). */
  readonly fresh?: boolean | undefined
  /** Milliseconds; overrides the deadline of the run, never beyond what the mode allows over HTTP. */
  readonly timeoutMs?: number | undefined
  /** True when another svc asks (`X-Svc-Hops`): its run then asks no further svc. */
  readonly calledByPeer?: boolean | undefined
  readonly selection?: Selection | undefined
  /** Called at most once, before the answer is returned. */
  readonly note?: ((facts: AnswerFacts) => void) | undefined
}

/** One method an operation. Local (computed here) or a client (over HTTP): the same type. */
export type Service = {
  readonly [O in Operation]: (request: Request<O>, call: Call) => Promise<Response<O>>
}

/** What a host of the Service needs besides: made by `open`, handed to the server. */
export type Runtime = {
  readonly version: string
  /** Resolves when the store answers; rejects with a Fault that says what is wrong. */
  readonly ready: (signal: AbortSignal) => Promise<void>
  /** For the start line and the status page. */
  readonly facts: RuntimeFacts
  /** The latest finished runs, newest first, one per mode and type, as this caller may see them (S11). */
  readonly recent: (caller: Caller) => readonly RecentRun[]
  /** Cancels what runs and closes the store. Safe to call twice. */
  readonly close: () => Promise<void>
}
export type RuntimeFacts = {
  /** The embedded store's file, or undefined without a store. */
  readonly store: string | undefined
  /** The svc.yaml that was read, or undefined. */
  readonly configuration: string | undefined
  /** Types with at least one configured monitor. */
  readonly types: readonly ServerType[]
}
export type RecentRun = {
  readonly type: ServerType
  readonly mode: ExecutionMode
  readonly response: HealthCheckResponse
  readonly ageSeconds: number
}

/** How `svc serve` behaves over HTTP: the `serve:` part of svc.yaml with the flags over it. */
export type ServeOptions = {
  /** Origins that may read answers in a browser; each exact, e.g. `https://ops.example.com`. */
  readonly origins: readonly string[]
  /** Host names answered besides the loopback names and, off loopback, this machine's own (S1). */
  readonly allowedHosts: readonly string[]
  /** Who sees messages, hosts and server state off loopback (S11). */
  readonly details: 'signed-in' | 'anyone'
  readonly jsonp: boolean
  /** Addresses whose `X-Forwarded-For` is believed. */
  readonly trustProxy: readonly string[]
  /** Bytes. */
  readonly maxBody: number
  /** Puts stack traces into error bodies: never by default. */
  readonly debug: boolean
}
export const serveDefaults: ServeOptions = {
  origins: [],
  allowedHosts: [],
  details: 'signed-in',
  jsonp: true,
  trustProxy: [],
  maxBody: 1024 * 1024,
  debug: false,
}

/** What a request presents of itself; the Service decides what it is worth (A9). */
export type Credential =
  /** `Authorization: Bearer`, or the cookie `ss-tok`: an access token or a machine's key. */
  | { readonly kind: 'bearer'; readonly token: string }
  /** `X-ss-id`, `X-ss-pid` or their cookies. */
  | { readonly kind: 'session'; readonly secret: string }
