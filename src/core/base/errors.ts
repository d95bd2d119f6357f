/**
 * Every way a call can fail, in one table: its code on the wire, its HTTP status, its exit code. A fault is something
 * that the user can fix and carries hints; any other error is a defect of ours.
 */

/** Exit codes are frozen; `svc help exit-codes` prints this table. */
export const exits = {
  ok: { code: 0, meaning: 'done; healthy' },
  defect: { code: 1, meaning: 'a defect of svc itself' },
  usage: { code: 2, meaning: 'wrong or missing flag, argument or variable' },
  unhealthy: { code: 3, meaning: 'unhealthy (also when the server answered HTTP 200 with Failure)' },
  unauthenticated: { code: 4, meaning: 'sign-in needed, refused or expired' },
  forbidden: { code: 5, meaning: 'signed in, but a role is missing' },
  unreachable: { code: 6, meaning: 'server unreachable: DNS, refused, TLS' },
  timeout: { code: 7, meaning: 'no answer in time' },
  serverError: { code: 8, meaning: 'server error or unreadable answer' },
  rejected: { code: 9, meaning: 'rejected by the server (4xx), or it lacks the operation' },
  partial: { code: 10, meaning: 'partly done' },
  noKeychain: { code: 11, meaning: 'no usable credential store' },
  local: {
    code: 12,
    meaning: 'local configuration or file, standard output not writable, wrong Node version, port in use',
  },
  interrupted: { code: 130, meaning: 'interrupted (SIGINT); 143 for SIGTERM' },
} as const
export type ExitName = keyof typeof exits

type FaultSpec = {
  readonly errorCode: string
  readonly status: number
  readonly exit: ExitName
  readonly message: string
}

/** Status, exit code, sentence, and the code on the wire where that is not the name. */
const rows = {
  // Requests
  BadRequest: [400, 'rejected', 'The request cannot be understood'],
  NotEmpty: [400, 'rejected', 'A required field is empty'],
  Unreadable: [400, 'rejected', 'The request body cannot be read', 'SerializationException'],
  Unauthorized: [401, 'unauthenticated', 'Not Authenticated'],
  Forbidden: [403, 'forbidden', 'Invalid Role'],
  NotFound: [404, 'rejected', 'Not found'],
  MethodNotAllowed: [405, 'rejected', 'Method not allowed'],
  NotAcceptable: [406, 'rejected', 'The answer is not available in a format that the request accepts'],
  RequestTimeout: [408, 'timeout', 'The request took too long'],
  Conflict: [409, 'rejected', 'Conflict'],
  TooLarge: [413, 'rejected', 'The request body is too large', 'RequestEntityTooLarge'],
  UnsupportedMediaType: [415, 'rejected', 'This content type is not supported'],
  Misdirected: [421, 'rejected', 'This server does not accept requests for that host name', 'MisdirectedRequest'],
  TooManyRequests: [429, 'serverError', 'Too many requests'],
  HeadersTooLarge: [431, 'rejected', 'The request headers are too large', 'RequestHeaderFieldsTooLarge'],
  Defect: [
    500,
    'defect',
    'An unexpected error occurred; its details are in the log under this correlation id',
    'InternalServerError',
  ],
  NotImplemented: [501, 'rejected', 'This operation does not exist in this version', 'NotImplementedException'],
  Unavailable: [503, 'serverError', 'Unavailable at the moment', 'ServiceUnavailable'],
  // On the caller's side
  Usage: [400, 'usage', 'Invalid usage'],
  Unreachable: [502, 'unreachable', 'The server cannot be reached'],
  Timeout: [504, 'timeout', 'No answer in time'],
  UnreadableAnswer: [502, 'serverError', 'The answer of the server cannot be read'],
  ServerError: [502, 'serverError', 'The server failed'],
  NoSuchOperation: [404, 'rejected', 'The server does not have this operation'],
  NoKeychain: [500, 'noKeychain', 'No usable credential store is available'],
  Local: [500, 'local', 'A local file or setting prevents this'],
  Interrupted: [499, 'interrupted', 'Interrupted'],
} as const satisfies Record<string, readonly [status: number, exit: ExitName, message: string, errorCode?: string]>
export type FaultName = keyof typeof rows

export const faults = Object.fromEntries(
  Object.entries(rows).map(([name, [status, exit, message, errorCode = name]]) => [
    name,
    { errorCode, status, exit, message },
  ]),
) as Readonly<Record<FaultName, FaultSpec>>

/** A problem with one field, as in ResponseStatus.Errors. */
export type FieldFault = {
  readonly ErrorCode: string
  readonly FieldName: string
  readonly Message: string
  readonly Meta?: Readonly<Record<string, string>> | undefined
}

/**
 * A required field without a value. Clients find the name that the message shows in its Meta.
 *
 * @example
 * ```ts
 * emptyField('UserName').Message // "'UserName' must not be empty."
 * ```
 */
export const emptyField = (field: string, shownName = field): FieldFault => ({
  ErrorCode: 'NotEmpty',
  FieldName: field,
  Message: `'${shownName}' must not be empty.`,
  Meta: { PropertyName: shownName },
})

/** A field with a value that breaks a rule. `what` continues the sentence after the name. */
export const invalidField = (field: string, what: string): FieldFault => ({
  ErrorCode: 'InvalidValue',
  FieldName: field,
  Message: `'${field}' ${what}`,
})

export type FaultDetails = {
  /** Overrides the ErrorCode of the row, e.g. `NotSupportedException`. */
  readonly errorCode?: string | undefined
  readonly fields?: readonly FieldFault[] | undefined
  /** The hints for a remedy, one line each; the last line is the next step. */
  readonly hints?: readonly string[] | undefined
  /** Seconds, for the Retry-After header. */
  readonly retryAfter?: number | undefined
  /** Response headers that belong to this fault, e.g. Allow. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Unauthorized: the caller may sign in by digest; `stale`: the digest was right, but needs a new nonce (A12). */
  readonly challenge?: 'digest' | 'stale' | undefined
  /** The HTTP status of a remote server's error. */
  readonly remoteStatus?: number | undefined
  /** Its own words, sanitized. */
  readonly remoteMessage?: string | undefined
  /** The remote server rehearses: its error may be scripted. */
  readonly drill?: true | undefined
  readonly meta?: Readonly<Record<string, string>> | undefined
  /** The mistakes in a local file, in its order. */
  readonly places?: readonly FilePlace[] | undefined
  /** Set when `--only` and `--skip` leave nothing of an answer. */
  readonly nothingSelected?: boolean | undefined
  readonly cause?: unknown
}

/**
 * The hint to run the same command as another account, with these variables. The command line completes it.
 *
 * @example
 * ```ts
 * asAccount('svc', ['SVC_HOME=/srv/svc']) // 'sudo -u svc SVC_HOME=/srv/svc svc COMMAND'
 * ```
 */
export const asAccount = (account: string, variables: readonly string[] = []): string =>
  ['sudo -u', account, ...variables, 'svc COMMAND'].join(' ')

/** A mistake in a file. Lines and columns are counted from 1. */
export type FilePlace = {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly message: string
}

/** A failure that a person can fix. Carries its row of the table and what to do next. */
export class Fault extends Error {
  override readonly name = 'Fault'
  readonly fault: FaultName
  readonly details: FaultDetails
  constructor(fault: FaultName, message?: string, details: FaultDetails = {}) {
    super(message ?? faults[fault].message, details.cause === undefined ? undefined : { cause: details.cause })
    this.fault = fault
    this.details = details
  }
  get errorCode(): string {
    return this.details.errorCode ?? faults[this.fault].errorCode
  }
  get status(): number {
    return faults[this.fault].status
  }
  get exitCode(): number {
    return exits[faults[this.fault].exit].code
  }
}

/** This svc is closing. */
export const shuttingDown = (): Fault => new Fault('Unavailable', 'Shutting down', { retryAfter: 5 })

/** The schema of a store is a later one than this svc knows. */
export class NewerStore extends Fault {
  /** The same for callers, who need not know where the store is. */
  readonly reason: string
  /** `hint`: what else than an update helps. */
  constructor(
    store: string,
    { schema, supports }: { readonly schema: number; readonly supports: number },
    hint = 'Update svc, or set SVC_STORE to another store.',
  ) {
    const what = `was written by a newer svc (schema ${schema}; this svc supports schema ${supports})`
    super('Local', `${store} ${what}`, { hints: [hint] })
    this.reason = `The store ${what}`
  }
}

/** A store that has objects which svc did not make, and which change what svc reads or writes. It is not used. */
export class AlteredStore extends Fault {
  /** Continues the sentence "The store …". Only for people who may know what it contains. */
  readonly why: string
  constructor(store: string, why: string, hints: readonly string[]) {
    super('Local', `${store} ${why}`, { hints })
    this.why = why
  }
}

/**
 * A store in a file that cannot be used at the moment, for a reason that no setting of svc can be blamed for: its file
 * system is full or read-only or reports errors, another process has locked it, or its file is gone. A command ends with
 * it; `svc serve` goes on without the store and tries again (W16).
 */
export class FileStoreOutage extends Fault {
  /** Continues the sentence "The store …". Callers may see it: it does not say where the store is. */
  readonly why: string
  constructor(
    store: string,
    why: string,
    { hints, cause }: { readonly hints: readonly string[]; readonly cause?: unknown },
  ) {
    super('Local', `${store} ${why}`, { hints, ...(cause === undefined ? {} : { cause }) })
    this.why = why
  }
}

/** The store cannot be used at the moment. Whoever tries again later may succeed. */
export class StoreOutage extends Fault {
  /** Continues the sentence "The store …". Callers may see it: it does not say where the store is. */
  readonly why: string
  /** Whether the store is a file of this machine, and not a database server. */
  readonly isFile: boolean
  /** `message`: for people who may know where the store is. Default: the same as for callers. */
  constructor(
    why: string,
    {
      message,
      hints,
      cause,
      isFile = false,
    }: {
      readonly message?: string
      readonly hints?: readonly string[]
      readonly cause?: unknown
      readonly isFile?: boolean
    },
  ) {
    super('Unavailable', message ?? `The store ${why}`, {
      retryAfter: 5,
      ...(hints ? { hints } : {}),
      ...(cause === undefined ? {} : { cause }),
    })
    this.why = why
    this.isFile = isFile
  }
}

/**
 * An error that the database of the store reports and no Fault describes. Any other error of a query is a defect of
 * ours.
 */
export class StoreError extends Error {}

/** Whether a query failed because of the store, and not because of a defect. */
export const isStoreFailure = (error: unknown): boolean => error instanceof Fault || error instanceof StoreError

/**
 * Whether the operating system refused something, such as EMFILE. Errors of Node about wrong arguments (ERR_…) are defects.
 *
 * @example
 * ```ts
 * isSystemError(Object.assign(new Error(), { code: 'EMFILE' })) // true
 * isSystemError(Object.assign(new Error(), { code: 'ERR_INVALID_ARG_TYPE' })) // false
 * ```
 */
export function isSystemError(error: unknown): boolean {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return error instanceof Error && typeof code === 'string' && /^E(?!RR_)[A-Z0-9]+$/.test(code)
}
