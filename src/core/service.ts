import type {
  ExecutionMode,
  HealthCheckResponse,
  HeartbeatStatus,
  nameStyles,
  Operation,
  Request,
  Response,
  RunDocument,
  Selection,
  ServerType,
} from './protocol/index.ts'

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
  /**
   * The run itself, as the caller may read it: the answer is made from it and has no place for its figures. Absent
   * for the answer of a server that sends none.
   */
  readonly run?: RunDocument | undefined
}

export type Call = {
  readonly caller: Caller
  /** Absent: nobody is signed in. In process the OS account is Admin (P8). */
  readonly credential?: Credential | PasswordCredential | undefined
  /** Over HTTP, the verb that carried a sign-in: GET asks, DELETE signs out (A5–A7). Absent: POST. */
  readonly verb?: 'GET' | 'POST' | 'DELETE' | undefined
  /** `?continue=` of a sign-in, and the origin of this server that it must stay in (A14). */
  readonly continueTo?: { readonly url: string; readonly origin: string } | undefined
  readonly correlationId: string
  readonly signal: AbortSignal
  /** True when the caller accepts only a run that begins after its call (`Cache-Control: no-cache`). */
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
  /** Administration on this machine; undefined without a store. */
  readonly admin: Admin | undefined
  /** Whether a user that is not disabled holds Admin (P6); false without a store. */
  readonly anyAdmin: () => Promise<boolean>
  /** The latest finished runs, one per mode and type, as a caller with that view may see them. */
  readonly recent: (view: RunDocument['view']) => readonly RecentRun[]
  /** How much of a run a caller may see (S11). */
  readonly viewOf: (
    call: Pick<Call, 'caller' | 'credential' | 'correlationId' | 'signal'>,
  ) => Promise<RunDocument['view']>
  /** How many runs were started since the start, for whom. */
  readonly startedRuns?: (() => readonly StartedRuns[]) | undefined
  /** How many entries the audit has had since the store was made. Rejects when the store does not answer. */
  readonly auditEntries?: (() => Promise<number>) | undefined
  /** Told where this core answers over HTTP: none of its monitors asks there. */
  readonly answersAt?: ((url: string) => void) | undefined
  /** Cancels the checks that run; none begins afterwards. Safe to call twice. */
  readonly cancelRuns?: (() => void) | undefined
  /** Cancels what runs and closes the store. Safe to call twice. */
  readonly close: () => Promise<void>
}
/** One monitor run by itself, on this machine alone. */
export type TrialRequest = {
  readonly type: ServerType
  /** The MonitorName. */
  readonly monitor: string
  readonly mode: ExecutionMode
  /** Milliseconds, in place of the mode's deadline. */
  readonly timeoutMs?: number | undefined
}
export type Trial = {
  readonly durationMs: number
  readonly attempts: number
  readonly results: readonly {
    readonly check: string
    readonly level: 'ok' | 'warn' | 'fail'
    readonly message: string
    readonly details?: readonly string[] | undefined
    readonly fault?: string | undefined
    readonly observed?: number | undefined
    readonly unit?: string | undefined
    readonly limit?: number | undefined
    readonly address?: string | undefined
  }[]
}
export type RuntimeFacts = {
  /** The embedded store's file or the database's URL without its password; undefined without a store. */
  readonly store: string | undefined
  /** The svc.yaml that was read, or undefined. */
  readonly configuration: string | undefined
  /** Types with at least one configured monitor. */
  readonly types: readonly ServerType[]
}
export type StartedRuns = {
  readonly type: ServerType
  readonly mode: ExecutionMode
  /** `peer`: another svc. */
  readonly trigger: 'caller' | 'peer'
  readonly count: number
}
export type RecentRun = {
  readonly type: ServerType
  readonly mode: ExecutionMode
  readonly response: HealthCheckResponse
  readonly run?: RunDocument | undefined
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
  /** How members of JSON answers are spelled where a request asks for nothing else (N9). */
  readonly names: (typeof nameStyles)[number]
  /** Takes a user name and password by HTTP Basic, for one request each (A9). */
  readonly basic: boolean
  /** Addresses whose `X-Forwarded-For` is believed. */
  readonly trustProxy: readonly string[]
  /** Bytes. */
  readonly maxBody: number
  readonly metrics: {
    /** Series of health that one scrape of /metrics has at most. */
    readonly maxSeries: number
  }
  /** Puts stack traces into error bodies: never by default. */
  readonly debug: boolean
}
export const serveDefaults: ServeOptions = {
  origins: [],
  allowedHosts: [],
  details: 'signed-in',
  jsonp: true,
  names: 'PascalCase',
  basic: false,
  trustProxy: [],
  maxBody: 1024 * 1024,
  metrics: { maxSeries: 50_000 },
  debug: false,
}

/** HTTP Basic, good for one request, where it is turned on (A9). No client of ours sends it. */
export type PasswordCredential = { readonly kind: 'basic'; readonly userName: string; readonly password: string }
/** What a request presents of itself; the Service decides what it is worth (A9). */
export type Credential =
  /** `Authorization: Bearer`, or the cookie `ss-tok`: an access token or a machine's key. */
  | { readonly kind: 'bearer'; readonly token: string }
  /** `X-ss-id`, `X-ss-pid` or their cookies. */
  | {
      readonly kind: 'session'
      readonly secret: string
      /** RememberMe: a client then presents it as `X-ss-pid` (C6). */
      readonly permanent?: boolean | undefined
    }

/**
 * Administration by who can open the store (P8): not on the wire. Faults name the field that they
 * are about, in the names below; an unknown user or key is NotFound, a taken name or the last Admin
 * Conflict.
 */
export type Admin = {
  /** How answers name the store: the file, or the database's URL without its password. */
  readonly store: string
  readonly users: {
    /** Makes the store when there is none. Without a password the user cannot sign in with one. */
    readonly add: (user: NewUser, by: AdminActor) => Promise<UserFacts>
    readonly list: () => Promise<readonly UserFacts[]>
    readonly any: () => Promise<boolean>
    /** Names that one which is not there may stand for; not all of a large store are looked at. */
    readonly near: (userName: string) => Promise<readonly string[]>
    /** By exact name, else by e-mail; so are all below. */
    readonly show: (userName: string) => Promise<UserFacts>
    /** Ends every session and token of the user. */
    readonly passwd: (userName: string, password: string, by: AdminActor) => Promise<UserFacts>
    readonly disable: (userName: string, by: AdminActor) => Promise<UserFacts>
    readonly enable: (userName: string, by: AdminActor) => Promise<UserFacts>
    /** Gives what was removed. */
    readonly remove: (userName: string, by: AdminActor) => Promise<UserFacts>
  }
  readonly keys: {
    /** `secret` is the key itself, told this once. */
    readonly create: (key: NewKey, by: AdminActor) => Promise<{ readonly key: KeyFacts; readonly secret: string }>
    readonly list: () => Promise<readonly KeyFacts[]>
    readonly near: (name: string) => Promise<readonly string[]>
    readonly revoke: (name: string, by: AdminActor) => Promise<void>
  }
  readonly roles: {
    readonly show: (userName: string) => Promise<UserFacts>
    readonly holders: (role: string) => Promise<readonly UserFacts[]>
    /** The roles that anybody holds, by name, the first 1,000. */
    readonly names: () => Promise<readonly string[]>
  }
  readonly heartbeats: {
    readonly list: () => Promise<readonly HeartbeatFacts[]>
    readonly near: (name: string) => Promise<readonly string[]>
    /** Forgets an agent that is gone for good. */
    readonly remove: (name: string, by: AdminActor) => Promise<void>
  }
  readonly audit: {
    /** Newest first; `before`: only entries with a smaller id. */
    readonly list: (options: {
      readonly limit: number
      readonly before?: number | undefined
    }) => Promise<readonly AuditFacts[]>
  }
}
/** Who administers: `local:alice`. */
export type AdminActor = {
  readonly who: string
  readonly correlationId: string
  readonly reason?: string | undefined
}
export type NewUser = {
  readonly userName: string
  readonly password?: string | undefined
  readonly email?: string | undefined
  readonly displayName?: string | undefined
  readonly roles?: readonly string[] | undefined
  readonly permissions?: readonly string[] | undefined
}
export type UserFacts = {
  readonly id: string
  readonly userName: string
  readonly email: string | undefined
  readonly displayName: string | undefined
  readonly disabled: boolean
  readonly hasPassword: boolean
  readonly createdAt: Date
  /** In the order granted. */
  readonly roles: readonly string[]
  readonly permissions: readonly string[]
}
export type NewKey = {
  readonly name: string
  readonly userName: string
  /** Absent: whatever its user holds at each request. Given: of these, what the user still holds. */
  readonly roles?: readonly string[] | undefined
  /** Of these, what the user still holds, and no role unless roles are given too. */
  readonly permissions?: readonly string[] | undefined
  /** Milliseconds from now; absent: until revoked. */
  readonly expiresInMs?: number | undefined
}
export type KeyFacts = {
  readonly name: string
  readonly userName: string
  /** Undefined: whatever its user holds. */
  readonly roles: readonly string[] | undefined
  /** Undefined where roles are given: none. */
  readonly permissions?: readonly string[] | undefined
  readonly createdAt: Date
  readonly expiresAt: Date | undefined
  readonly revokedAt: Date | undefined
}
/** The last sign of life of an agent. */
export type HeartbeatFacts = {
  readonly name: string
  readonly at: Date
  readonly who: string
  readonly status: HeartbeatStatus
  readonly message: string | undefined
  readonly version: string | undefined
  /** Milliseconds; so is the skew, by which the agent's clock was ahead. */
  readonly intervalMs: number | undefined
  readonly backlog: number | undefined
  readonly diskFreePercent: number | undefined
  readonly skewMs: number | undefined
}
export type AuditFacts = {
  readonly id: number
  readonly at: Date
  readonly event: string
  readonly who: string
  readonly address: string | undefined
  readonly target: string | undefined
  readonly correlationId: string
  readonly before: string | undefined
  readonly after: string | undefined
  readonly reason: string | undefined
}
