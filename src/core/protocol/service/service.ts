import type {
  ExecutionMode,
  Operation,
  Request,
  Response,
  RunDocument,
  RunSilence,
  Selection,
  ServerType,
} from '../index.ts'
import type { Family } from './family.ts'
import type { Incidents } from './incidents.ts'

export type * from './admin.ts'
export type * from './incidents.ts'

/**
 * The caller. In process it is the OS account; over HTTP the credentials of the request decide. The Service
 * authorizes the caller that it receives, in process and over HTTP.
 */
export type Caller =
  | { readonly kind: 'local'; readonly account: string }
  | {
      readonly kind: 'http'
      /** The peer's address, or the one that a trusted proxy reports. */
      readonly address: string
      /**
       * Whether the request comes from this machine, as far as the connection and the headers show: a relay on this
       * machine can look the same. For what the caller may read see `readsHere`, for exemptions `isExempt`.
       */
      readonly loopback: boolean
      /** The process that sent the request. Present if `loopback` is true. */
      readonly process?: PeerProcess | undefined
      /**
       * True if a relay on this machine passed the request on and nothing trustworthy names the caller: everybody who
       * uses this relay has the same address.
       */
      readonly relayed?: boolean | undefined
    }

/** The process at the other end of a connection from this machine. Nothing here rejects. */
export type PeerProcess = {
  /** Its account (uid). Resolves to undefined where nothing can tell. */
  readonly account: () => Promise<number | undefined>
  /** Whether it runs under the account of this server, and this is not root. */
  readonly isOwn: () => Promise<boolean>
  /** Whether it may read the details of health without a credential (S11). A plain boolean once that is known. */
  readonly reads: () => boolean | Promise<boolean>
}

/**
 * Whether the limits on strangers, on the number of runs and of connections, do not apply to a caller. True in process,
 * and for a process on this machine that runs under the account of this server and not as root: proxies and port
 * forwarders run as root, as does everybody in most containers. Over HTTP, the answer may take a read of the kernel's
 * table of connections, so ask only when a limit is about to apply.
 */
export const isExempt = async (caller: Caller): Promise<boolean> =>
  caller.kind === 'local' || (await caller.process?.isOwn()) === true

/** Whether a caller may read the details of health because it runs on this machine (S11). */
export const readsHere = (caller: Caller): boolean | Promise<boolean> =>
  caller.kind === 'local' || (caller.process?.reads() ?? false)

/** The facts that a transport may add to an answer. */
export type AnswerFacts = {
  /** Seconds since the run behind this answer ended, and more if it reuses older results; 0 for a run made for this call. */
  readonly ageSeconds: number
  /** The id of the (possibly shared) run. */
  readonly runId: string
  /** Whether these are results of the schedule, as the caller prefers. Absent: a run, or a server that does not say. */
  readonly stored?: boolean | undefined
  /**
   * The run itself, as far as the caller may see it: the answer is made from it and has no fields for its figures.
   * Absent when the server does not send runs.
   */
  readonly run?: RunDocument | undefined
}

export type Call = {
  readonly caller: Caller
  /** Absent: anonymous. In process the OS account is Admin (P8). */
  readonly credential?: Credential | PasswordCredential | DigestCredential | undefined
  /** Over HTTP, what a sign-in by digest is computed over (A12). Absent where digest is off. */
  readonly signed?: SignedRequest | undefined
  /** Over HTTP, the verb of a sign-in request: GET queries, DELETE signs out (A5–A7). Absent: POST. */
  readonly verb?: 'GET' | 'POST' | 'DELETE' | undefined
  /** `?continue=` of a sign-in, and the origin of this server that the URL must stay in (A14). */
  readonly continueTo?: { readonly url: string; readonly origin: string } | undefined
  /** Over HTTP, a GET of a provider, which may sign in by redirects (A13). */
  readonly browser?: BrowserSignIn | undefined
  readonly correlationId: string
  readonly signal: AbortSignal
  /** True when the caller accepts only a run that starts after its call (`Cache-Control: no-cache`). */
  readonly fresh?: boolean | undefined
  /**
   * True when the caller prefers the latest results of the schedule, however old, to a run (`Cache-Control: max-stale`).
   * Where no schedule repeats all of them, the answer is that of any other call.
   */
  readonly stored?: boolean | undefined
  /** Milliseconds; overrides the deadline of the run. Over HTTP it cannot exceed the mode's limit. */
  readonly timeoutMs?: number | undefined
  /** True when another svc makes the request (`X-Svc-Hops`): its run then queries no further svc. */
  readonly calledByPeer?: boolean | undefined
  /**
   * In process: repeats, once, sign-ins of monitors that were refused until this time (milliseconds since 1970). Never
   * sent to a server, where anybody could lock accounts with it.
   */
  readonly repeatsRefusedUntil?: number | undefined
  readonly selection?: Selection | undefined
  /** In process, calls with the same object share what is observed since the first of them. */
  readonly together?: object | undefined
  /** In process: called when the run of this call begins. */
  readonly onRun?: ((run: RunInProgress) => void) | undefined
  /** In process: called with the report of each monitor of the run as soon as that monitor ends. */
  readonly onReport?: ((report: MonitorEnd) => void) | undefined
  /** Called at most once, before the answer is returned. */
  readonly note?: ((facts: AnswerFacts) => void) | undefined
}

/** A run in this process. */
export type RunInProgress = {
  readonly monitors: readonly MonitorInProgress[]
  /** Those of `monitors` that have not ended. The set shrinks until the run has ended. */
  readonly pending: ReadonlySet<MonitorInProgress>
}
/** The end of one monitor in a run, with what a progress display needs of its results. */
export type MonitorEnd = MonitorInProgress & {
  readonly results: readonly {
    readonly status: 'ok' | 'warning' | 'failed'
    readonly notChecked?: string | undefined
  }[]
}
type MonitorInProgress = { readonly name: string; readonly host: boolean }

/** A browser that signs in by redirects: it leaves for the provider, and arrives with the provider's answer. */
export type BrowserSignIn = {
  /** This server's address, as browsers write it in Origin. */
  readonly origin: string
  /** The sealed state that the browser received when it left. */
  readonly sealed: string | undefined
  /** A parameter of the query by its exact name. */
  readonly parameter: (name: string) => string | undefined
  /**
   * Called with where to send the browser next, and with what it keeps meanwhile; undefined removes that. `permanent`:
   * whether the user stays signed in (RememberMe).
   */
  readonly redirect: (to: {
    readonly url: string
    readonly sealed: string | undefined
    readonly permanent?: boolean | undefined
  }) => void
}

/** One method per operation. The local Service and the HTTP client have the same type. */
export type Service = {
  readonly [O in Operation]: (request: Request<O>, call: Call) => Promise<Response<O>>
}

/** The parts that a host of the Service needs besides the Service. Made by `open`, passed to the server. */
export type Runtime = {
  readonly version: string
  /** Resolves when the store answers; rejects with a Fault that says what is wrong. */
  readonly ready: (signal: AbortSignal) => Promise<void>
  /** Facts for the start line and the status page. */
  readonly facts: RuntimeFacts
  /** The time that people read, in milliseconds since 1970. Absent: that of the wall clock. */
  readonly now?: (() => number) | undefined
  /** Work on the store of this machine that is no operation; undefined without a store. */
  readonly ownStore?:
    | {
        /** Objects in the database that svc did not make and does not use, as `the table "notes"`. */
        readonly foreign: () => Promise<readonly string[]>
        /** Seals what has no seal, and writes the audit with its seals as lines. Returns the newest seal (S13). */
        readonly exportAudit: (
          write: (line: string) => Promise<void>,
          signal: AbortSignal,
        ) => Promise<{ readonly number: number; readonly hash: string } | undefined>
      }
    | undefined
  /** Whether an enabled user holds Admin (P6). False without a store. */
  readonly anyAdmin: () => Promise<boolean>
  /**
   * The latest results of the types that are checked, one for each mode and type that has some, for these views. `own`: without
   * what callers have found here of monitors that another node runs.
   */
  readonly recent: (views: HealthViews, which?: 'own') => Promise<readonly RecentRun[]>
  /** The confirmed states of the checks that the schedule runs, for these views. Absent: there is no schedule. */
  readonly confirmed?: ((views: HealthViews) => ConfirmedStates) | undefined
  /** The incidents of the monitors that the schedule runs, for these views. Absent: there is no schedule. */
  readonly incidents?: ((views: HealthViews) => Promise<Incidents>) | undefined
  /** The monitors that other nodes run, by type. Absent where no nodes share a store. Never rejects. */
  readonly elsewhere?: (() => Promise<ReadonlyMap<ServerType, readonly MonitorElsewhere[]>>) | undefined
  /**
   * The last 90 days of these monitors, by type and name (`Sql/postgres orders`, `/host`). The caller has checked that the
   * reader may read them. Monitors that history does not know are missing. Absent: there is no history.
   */
  readonly days?: ((ids: readonly MonitorOfPage[]) => Promise<ReadonlyMap<string, DaysOfMonitor>>) | undefined
  /** The links in the messages of drills (M14). Absent: there are none. */
  readonly drillLinks?: DrillLinks | undefined
  /** How much a caller may see (S11). */
  readonly viewOf: (call: Pick<Call, 'caller' | 'credential' | 'correlationId' | 'signal'>) => Promise<HealthViews>
  /** The challenges of sign-in by digest (A12). Absent where it is off. Rejects when the store does not answer. */
  readonly digestChallenges?: ((stale: boolean) => Promise<readonly string[]>) | undefined
  /**
   * The metrics of the parts of this core for /metrics. `limitMs`: how long the store may take. Never rejects. Absent:
   * nothing.
   */
  readonly metrics?: ((limitMs: number) => Promise<readonly Family[]>) | undefined
  /**
   * Sets the HTTP address of this core, so that none of its monitors queries it, and the one at which other nodes reach it.
   */
  readonly answersAt?: ((url: string, peer?: string) => void) | undefined
  /**
   * The answer to another node of the store that asks whether this one speaks while none has the store. Undefined: it does not,
   * or nobody may know. Absent: no nodes share a store.
   */
  readonly answerToNode?: ((question: unknown) => string | undefined) | undefined
  /** Cancels the checks in progress and prevents new ones. Safe to call twice. */
  readonly cancelRuns?: (() => void) | undefined
  /** Cancels runs in progress and closes the store. Safe to call twice. */
  readonly close: () => Promise<void>
}
/** The path at which nodes of a store ask each other, and the header of the question. */
export const nodeQuestion = { path: '/nodes/speaker', header: 'svc-question' } as const

/**
 * The links in the messages of drills, by their tokens: what a link is, and its confirmation, which counts once. Undefined
 * if the link is unknown or older than 7 days. Both reject with a Fault while the store does not answer.
 */
export type DrillLinks = {
  readonly read: (token: string) => Promise<LinkOfDrill | undefined>
  readonly confirm: (token: string) => Promise<LinkOfDrill | undefined>
}
/** Instants are milliseconds since 1970. */
export type LinkOfDrill = {
  readonly receiver: string
  readonly beganAt: number
  /** Undefined: nobody has confirmed it yet. */
  readonly confirmedAt: number | undefined
}
/** A monitor that another node runs. */
export type MonitorElsewhere = {
  /** The MonitorName. */
  readonly name: string
  /** The node that runs it. Undefined: one that this node does not know, or none at the moment. */
  readonly node: string | undefined
  /** Where the page of that node is. Undefined: that node does not say. */
  readonly url?: string | undefined
  /** The fault that it has confirmed and stored. `unknown`: the store does not answer. Undefined: none. */
  readonly fault: 'warning' | 'failed' | 'unknown' | undefined
  readonly reason?: { readonly check: string; readonly message: string } | undefined
}
/** A monitor by its name. Without a type it is the machine itself. */
export type MonitorOfPage = { readonly type?: ServerType | undefined; readonly monitor: string }
/** The worst status of a day in the history. */
export type DayStatus = 'ok' | 'warning' | 'failed' | 'unobserved'
export type DaysOfMonitor = {
  /** The oldest first; the last one is today. Days begin at midnight UTC. */
  readonly days: readonly DayStatus[]
  /** Of the time observed. Undefined if none was. */
  readonly availabilityPercent: number | undefined
}
/** How much of the runs of a server type a caller may see or, without a type, of what belongs to no single type. */
export type HealthViews = (type?: ServerType) => RunDocument['view']

/** A check, or an item of it, as the latest runs have confirmed it. Instants are milliseconds since 1970. */
export type ConfirmedCheck = {
  /** Absent for the machine itself. */
  readonly type?: ServerType | undefined
  /** The MonitorName. */
  readonly monitor: string
  readonly check: string
  /** The check's name in metrics. */
  readonly slug: string
  readonly item?: string | undefined
  readonly level: 'ok' | 'warning' | 'failed'
  /** When the first run began that showed the level. */
  readonly since: number
  readonly fault?: string | undefined
  readonly message: string
  /** False where the latest verdict is too old to count. */
  readonly isObserved: boolean
  /** Whether the latest run shows the confirmed state. */
  readonly isSettled: boolean
  /** Since when runs show something worse that is not confirmed. */
  readonly doubtSince?: number | undefined
  /** Faults that were over before they were confirmed, since svc serve watches. */
  readonly blips: number
  /** Why nobody is notified about it, the longest first. Names and reasons only for readers of the details of all types. */
  readonly silences: readonly RunSilence[]
  readonly incident?: ShownIncident | undefined
}
export type ShownIncident = {
  readonly id: string
  readonly level: 'warning' | 'failed'
  /** When the first bad run began. */
  readonly beganAt: number
  readonly fault?: string | undefined
  readonly message: string
  /** The monitor on which it rests; `a monitor of another type` for readers who may not see that type. */
  readonly cause?: { readonly type?: ServerType | undefined; readonly monitor: string } | undefined
  readonly isFlapping: boolean
  readonly isUnobserved: boolean
  /** How many other monitors have incidents that rest on its monitor, of whatever types. */
  readonly victims: number
}
export type ConfirmedStates = {
  /** Made while they are read: there may be many of them. */
  readonly checks: Iterable<ConfirmedCheck>
  /** Whether no witness answers. Undefined without witnesses. */
  readonly isIsolated: boolean | undefined
}

/** A request to run a single monitor, on this machine only. */
export type TrialRequest = {
  readonly type: ServerType
  /** The MonitorName. */
  readonly monitor: string
  readonly mode: ExecutionMode
  /** Milliseconds; overrides the mode's deadline. */
  readonly timeoutMs?: number | undefined
}
export type Trial = {
  readonly durationMs: number
  readonly attempts: number
  readonly results: readonly {
    readonly check: string
    readonly level: 'ok' | 'warn' | 'not checked' | 'fail'
    readonly message: string
    readonly details?: readonly string[] | undefined
    readonly fault?: string | undefined
    readonly observed?: number | undefined
    readonly unit?: string | undefined
    readonly limit?: number | undefined
    readonly address?: string | undefined
  }[]
}
export type StoreState = {
  /** By how much this machine's clock is ahead of the store's. Undefined where the store has no clock of its own. */
  readonly clockSkewMs: number | undefined
  /** Attempts to delete expired rows that failed. */
  readonly sweepFailures: number
  /** False after a write that failed, until one succeeds. */
  readonly writable: boolean
}
export type RuntimeFacts = {
  /** The embedded store's file or the database's URL without its password; undefined without a store. */
  readonly store: string | undefined
  /** Why this server uses nothing of its store, which is left as it is. Undefined: it does, or has none. */
  readonly unusableStore?: string | undefined
  /** The svc.yaml in use, or undefined. */
  readonly configuration: string | undefined
  /** The files of an embedded store that were opened, by name; undefined while it is not used. Only in `svc serve`. */
  readonly storeFiles?: (() => Promise<Readonly<Record<string, string | undefined>> | undefined>) | undefined
  /** The name of this node among those that share the store. Undefined: it shares none. */
  readonly node?: string | undefined
  /** The load of the monitors that svc runs by itself, in a sentence. Undefined if it runs none. */
  readonly schedule?: string | undefined
  /** Which confirmed states and incidents do not survive the end of this server, and why, in a sentence. Undefined: all do. */
  readonly notKept?: string | undefined
  /** `serve.timezone`, the zone of the times on pages. Undefined: that of the machine. */
  readonly timezone?: string | undefined
  /** Types with at least one configured monitor. */
  readonly types: readonly ServerType[]
  /** Types that check parts of svc itself. Empty with a configuration, and where one is required. */
  readonly ownTypes: readonly ServerType[]
  /** The ways to sign in besides passwords, as the metadata shows them. Absent: none. */
  readonly providers?: readonly ProviderFacts[] | undefined
}
/** A sign-in provider that is turned on, for clients. */
export type ProviderFacts = {
  readonly name: string
  readonly type: string
  readonly label?: string | undefined
  readonly meta?: Readonly<Record<string, string>> | undefined
}
export type StartedRuns = {
  /** Undefined for a scheduled run of the host block. */
  readonly type: ServerType | undefined
  readonly mode: ExecutionMode
  /** `peer`: another svc. The schedule runs single monitors, the others all of a type. */
  readonly trigger: 'caller' | 'schedule' | 'peer'
  readonly count: number
}
/** The latest results of the monitors of a type at one depth, whichever runs found them. */
export type RecentRun = {
  readonly type: ServerType
  readonly mode: ExecutionMode
  /** As if one run had found all of them. Its correlation id is empty where several runs did. */
  readonly run: RunDocument
  /** Since the last of them. */
  readonly ageSeconds: number
  /**
   * For each monitor of the run, its key, which is the same at every depth, and when it ran, in monotonic milliseconds.
   */
  readonly places: readonly { readonly key: string; readonly beganAt: number }[]
  /** False if a monitor of the type has no result. */
  readonly complete: boolean
  /** True if all of them are too old to count. */
  readonly expired: boolean
}

export { type ServeOptions, serveDefaults } from './serve-settings.ts'
/** HTTP Basic, valid for one request, where it is enabled (A9). Our own clients never send it. */
export type PasswordCredential = { readonly kind: 'basic'; readonly userName: string; readonly password: string }
/** The parts of a request that a digest contains. */
export type SignedRequest = {
  readonly method: string
  /** The request target as sent, with the query. */
  readonly target: string
  /** The parameters of `Authorization: Digest`, one character for each byte. Absent: they are in the body. */
  readonly digest?: string | undefined
}
/** HTTP Digest, valid for one request, where it is turned on (A12). Our own clients never send it. */
export type DigestCredential = SignedRequest & { readonly kind: 'digest' }
/** The credential of a request. The Service decides whether it is valid (A9). */
export type Credential =
  /** `Authorization: Bearer`, or the cookie `ss-tok`: an access token or a machine's key. */
  | { readonly kind: 'bearer'; readonly token: string }
  /** `X-ss-id`, `X-ss-pid` or their cookies. */
  | {
      readonly kind: 'session'
      readonly secret: string
      /** RememberMe: clients then present it as `X-ss-pid` (C6). */
      readonly permanent?: boolean | undefined
    }
