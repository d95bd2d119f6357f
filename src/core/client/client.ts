import { Fault } from '../base/errors.ts'
import { lazy } from '../base/lazy.ts'
import { type ProxyEnvironment, type ProxyServer, proxyFor } from '../base/proxy-variables.ts'
import {
  type ExecutionMode,
  type HealthCheckRequest,
  type HealthCheckResponse,
  type Operation,
  type OperationSpec,
  operations,
  type Request,
  type Response,
  type RunDocument,
  runMediaType,
  schemaOf,
  select,
} from '../protocol/index.ts'
import type { Call, Credential, Service } from '../protocol/service/service.ts'
import { type Address, readAddress } from './address.ts'
import {
  byServerClock,
  type CredentialSource,
  presenting,
  presentingOf,
  secretsOf,
  withCookieTokens,
  withoutSecrets,
} from './credential.ts'
import { exchangeDirectly, isDirect } from './direct.ts'
import { type ClientAsk, exchange, type HangWatch, type Progress, type Received, watchHang } from './exchange.ts'
import { hangFault, redirectPath, type SentRequest, timeoutFault, transportFault } from './failure.ts'
import type { RawAnswer, RawRequest } from './raw.ts'
import { isTrustError, Trust } from './trust.ts'
import { demandNewRun, demandSameRun, judgedByStatus, runJudgedByStatus, runOf, verdict } from './verdict.ts'

/**
 * An operation whose routes have only GET, with all inputs in the query, uses GET. Every other operation uses POST
 * with a body. The query for the current session uses the GET that the call names (A6).
 */
export const verbOf = (operation: Operation, call: Call): 'GET' | 'POST' => {
  const { routes }: OperationSpec = operations[operation]
  const takes = (verb: 'GET' | 'POST'): boolean => routes.some((route) => route.verbs.includes(verb))
  return takes('POST') && !(call.verb === 'GET' && takes('GET')) ? 'POST' : 'GET'
}

/** The headers that carry the credential (A9, C6). */
export function credentialHeaders(credential: Credential | undefined): Readonly<Record<string, string>> {
  if (!credential) return {}
  if (credential.kind === 'bearer') return { Authorization: `Bearer ${credential.token}` }
  return credential.permanent
    ? { 'X-ss-pid': credential.secret, 'X-ss-opt': 'perm' }
    : { 'X-ss-id': credential.secret, 'X-ss-opt': 'temp' }
}

/** The HTTP request of a call (C1), built from the operation's row. `json` is the body of a POST. */
export function askFor(
  operation: Operation,
  request: unknown,
  call: Call,
  client: { readonly prefix: string; readonly userAgent: string },
  json?: string,
): ClientAsk {
  const values = request as Readonly<Record<string, unknown>>
  const body = json === undefined ? undefined : Buffer.from(json)
  const query = body ? '' : queryOf(operation, values)
  return {
    method: verbOf(operation, call),
    path: `${client.prefix}${pathOf(operation, verbOf(operation, call), values)}${query === '' ? '' : `?${query}`}`,
    headers: {
      // Includes plain JSON, so that a server that does not know the run document can answer.
      Accept: operation === 'healthCheck' ? `${runMediaType}, application/json` : 'application/json',
      'User-Agent': client.userAgent,
      'X-Correlation-Id': call.correlationId,
      ...(call.fresh || call.stored ? { 'Cache-Control': call.fresh ? 'no-cache' : 'max-stale' } : {}),
      ...(call.calledByPeer ? { 'X-Svc-Hops': '1' } : {}),
      ...(body ? { 'Content-Type': 'application/json', 'Content-Length': String(body.length) } : {}),
    },
    body,
  }
}

const placeholder = /\{(\w+)\}/g

/** The longest of the operation's paths for the verb whose placeholders the request fills. */
function pathOf(operation: Operation, verb: 'GET' | 'POST', values: Readonly<Record<string, unknown>>): string {
  const { routes }: OperationSpec = operations[operation]
  const filled = routes.flatMap(({ path, verbs }) => {
    if (!verbs.includes(verb)) return []
    if (!path.includes('{')) return [path]
    const names = [...path.matchAll(placeholder)].map(([, name = '']) => name)
    // Dots alone would change the path, and the text after a dot could pass for a format (F1).
    return names.every((name) => typeof values[name] === 'string' && /^[^.]+$/.test(values[name]))
      ? [path.replace(placeholder, (_, name: string) => encodeURIComponent(String(values[name])))]
      : []
  })
  return filled.sort((a, b) => b.length - a.length)[0] ?? routes[0].path
}

/**
 * Encodes the simple field types: texts, flags, numbers, choices, dates, and lists of texts, whose parameter repeats. The
 * others need `wire`, which is loaded later, while the server works on its answer.
 */
function queryOf(operation: Operation, values: Readonly<Record<string, unknown>>): string {
  const pairs = Object.entries(operations[operation].request.fields).flatMap(([name, field]) => {
    const value = values[name]
    if (value === undefined || value === null || value === '') return []
    if (value instanceof Date) return [`${name}=${value.toISOString()}`]
    if (Array.isArray(value)) return value.map((item) => `${name}=${encodeURIComponent(inList(String(item)))}`)
    if (!asItIs.has(schemaOf(field).kind)) throw new TypeError(`${operation}: ${name} cannot be put into a query`)
    return [`${name}=${encodeURIComponent(typeof value === 'string' ? value : JSON.stringify(value))}`]
  })
  return pairs.join('&')
}
/** A text of a list in JSV. */
const inList = (text: string): string => (/[",[\]{}]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)
const asItIs: ReadonlySet<string> = new Set(['text', 'flag', 'number', 'choice'])

export type ClientOptions = {
  /** With or without a path and trailing slashes. */
  readonly baseUrl: string
  /** A PEM file of additional certificate authorities to trust. */
  readonly caFile?: string | undefined
  /** The trust of another client with the same `caFile`: many clients then read the authorities once. */
  readonly trust?: Trust | undefined
  /** Allows plain http to another machine. */
  readonly insecureHttp?: boolean | undefined
  readonly userAgent: string
  /** Timeout in milliseconds for a whole call. `call.timeoutMs` overrides it; the default is `patienceFor`. */
  readonly timeoutMs?: number | undefined
  /** Holds HTTPS_PROXY, HTTP_PROXY and NO_PROXY. Defaults to `process.env`. */
  readonly env?: ProxyEnvironment | undefined
  /** Presented to guarded operations, and to others after a 401. A call's own credential overrides it. */
  readonly credential?: CredentialSource | undefined
  /** Starts an operation, perhaps later: many clients then limit how many run at once. */
  readonly inTurn?: (<R>(work: () => Promise<R>) => Promise<R>) | undefined
}

export type Client = Service & {
  /**
   * Sends any request to the server with the stored credential. Resolves with the answer as received, whatever it
   * says. Rejects like the other methods when there is no answer.
   */
  readonly ask: (request: RawRequest, call: Call) => Promise<RawAnswer>
  /** Cancels the calls in progress: they reject with `Fault` Interrupted. Safe to call twice. */
  readonly close: () => void
  /** Closes the client at the end of a block: `using client = openClient(…)`. */
  readonly [Symbol.dispose]: () => void
}

/** Milliseconds: the longest run of each mode, plus 5 s for the network. */
const patience: Record<ExecutionMode, number> = { Basic: 13_000, Standard: 25_000, Advanced: 50_000 }
/** Milliseconds that a new run may have to wait before it starts: the run in progress and the pause after it. */
const beforeFresh: Record<ExecutionMode, number> = { Basic: 9_000, Standard: 21_000, Advanced: 46_000 }
/** The longest delay that a timer supports. */
const maxTimer = 2 ** 31 - 1

type Link = {
  readonly options: ClientOptions
  readonly address: Address
  readonly proxy: ProxyServer | undefined
  readonly trust: Trust
  readonly life: Life
}
/** The calls in progress of a client, and the fault of each call once the client is closed. */
type Life = { readonly calls: Set<AbortController>; closed?: Fault }

/**
 * The Service of a server, over HTTP. Throws `Fault` Usage for an unusable base URL, and Local for an unusable CA file
 * or proxy variable. Its methods reject with a `Fault`, or with the reason of `call.signal`.
 *
 * A health call sends its request before it first awaits anything else.
 */
export function openClient(options: ClientOptions): Client {
  const address = readAddress(options.baseUrl, options.insecureHttp ?? false)
  const life: Life = { calls: new Set() }
  const link: Link = {
    options,
    address,
    proxy: proxyFor(address, options.env ?? process.env),
    trust: options.trust ?? new Trust(options.caFile),
    life,
  }
  const close = (): void => {
    life.closed ??= new Fault('Interrupted', 'The client was closed')
    for (const call of life.calls) call.abort(life.closed)
  }
  const ask: Client['ask'] = (request, call) => anything(link, request, call)
  return Object.assign(serviceOver(link), { ask, close, [Symbol.dispose]: close })
}

const method =
  <O extends Operation>(link: Link, operation: O) =>
  (request: Request<O>, call: Call): Promise<Response<O>> => {
    const { inTurn } = link.options
    return inTurn ? inTurn(() => perform(link, operation, request, call)) : perform(link, operation, request, call)
  }
/** One method for each row of the table, made on use: most commands call one. */
const serviceOver = (link: Link): Service =>
  new Proxy({} as Service, {
    get: (made, name) => {
      if (!Object.hasOwn(made, name) && Object.hasOwn(operations, name))
        Reflect.set(made, name, method(link, name as Operation))
      return Reflect.get(made, name) as unknown
    },
  })

async function perform<O extends Operation>(
  link: Link,
  operation: O,
  request: Request<O>,
  call: Call,
): Promise<Response<O>> {
  const { address, options } = link
  const client = { prefix: address.prefix, userAgent: options.userAgent }
  const ms = call.timeoutMs ?? options.timeoutMs ?? patienceFor(request, call.fresh)
  const response = await inTime(link, call, ms, request, async ({ end, progress, presented, hasTimeout }) => {
    const json = verbOf(operation, call) === 'GET' ? undefined : await encode(operation, request)
    const ask = askFor(operation, request, call, client, json)
    const sent = { operation, ...placeOf(address, ask) }
    const how = presentingOf(operation, call, options.credential)
    return await presenting(how, options.credential, end.signal, async (credential) => {
      presented.push(credential)
      progress.stage = 'connecting'
      const [received, wire] = await Promise.all([
        travel(link, ask, credentialHeaders(credential), sent, { end, progress, hasTimeout }),
        decoder.get(),
      ])
      const run = runOf(received, sent, wire)
      if (run) return (await answerOfRun(run, request as HealthCheckRequest, received, sent, call)) as Response<O>
      const understood = verdict(received, sent, wire.decodeAnswer) as Response<O>
      const answer =
        operation === 'healthCheck'
          ? (healthAnswerOf(
              understood,
              request as HealthCheckRequest,
              received,
              sent,
              call,
              wire.OffsetDate,
            ) as Response<O>)
          : understood
      reportAge(received, answer, call)
      return withCookieTokens(operation, answer, received)
    })
  })
  // `answerOfRun` has already applied the selection; applying it again changes nothing.
  return operation === 'healthCheck' && call.selection
    ? (select(response as HealthCheckResponse, call.selection) as Response<O>)
    : response
}

/** Converts a run from a server to the interface's document, and passes the run itself to `note`. */
async function answerOfRun(
  document: RunDocument,
  request: HealthCheckRequest,
  received: Received,
  sent: SentRequest,
  call: Call,
): Promise<HealthCheckResponse> {
  demandSameRun(request, document, sent)
  if (call.fresh) demandNewRun(request, received, document.endedAt, sent)
  const run = runJudgedByStatus(document, received.status)
  const { healthCheckResponse, selectRun } = await import('../checks/reports/index.ts')
  const selected = call.selection ? selectRun(run, call.selection) : run
  const stored = /(?:^|,)\s*svc; *hit\b/.test(String(received.headers['cache-status'] ?? ''))
  const runId = run.runId ?? run.correlationId ?? ''
  call.note?.({ ageSeconds: ageOf(received.headers) ?? 0, runId, run: selected, stored })
  return healthCheckResponse(selected)
}

/** The answer of a server that sends no run. */
function healthAnswerOf(
  understood: HealthCheckResponse,
  request: HealthCheckRequest,
  received: Received,
  sent: SentRequest,
  call: Call,
  offsetDate: Parameters<typeof byServerClock>[2],
): HealthCheckResponse {
  const answer = byServerClock(understood, received.headers.date, offsetDate)
  if (call.fresh) demandNewRun(request, received, answer.ExecutionMetrics?.EndDateTime, sent)
  return judgedByStatus(answer, received.status)
}

async function anything(link: Link, request: RawRequest, call: Call): Promise<RawAnswer> {
  const { address, options } = link
  const { askRaw, rawAsk } = await import('./raw.ts')
  const ask = rawAsk(request, call, { prefix: address.prefix, userAgent: options.userAgent })
  const ms = call.timeoutMs ?? options.timeoutMs ?? patience.Standard
  return await inTime(link, call, ms, request, ({ end, progress, presented, hasTimeout }) =>
    askRaw(ask, placeOf(address, ask), call, options.credential, end.signal, async (credential, request, came) => {
      presented.push(credential)
      progress.stage = 'connecting'
      const underway = { end, progress, hasTimeout }
      return await travel(link, ask, credentialHeaders(credential), request, underway, came)
    }),
  )
}

/** The place of a request, for messages. */
const placeOf = ({ prefix, label }: Address, { method, path }: ClientAsk) => ({
  method,
  server: label,
  url: `${label}${path.slice(prefix.length).replace(/\?.*$/s, '')}`,
})

type Underway = {
  /** Ends the call, with the reason. */
  readonly end: AbortController
  readonly progress: Progress
  /** Whether the caller has set the time limit. */
  readonly hasTimeout: boolean
  /** All credentials presented so far. No message may contain them. */
  readonly presented: (Credential | undefined)[]
}

type Exchanging = Pick<Underway, 'end' | 'progress' | 'hasTimeout'>

/** Runs a call with its deadline. Describes failures in our own words, without the secrets of the call. */
async function inTime<R>(
  { address, proxy, life, options }: Link,
  call: Call,
  timeoutMs: number,
  request: unknown,
  work: (underway: Underway) => Promise<R>,
): Promise<R> {
  const ms = Math.min(timeoutMs, maxTimer)
  const end = new AbortController()
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    end.abort()
  }, ms)
  endBy(call.signal, end)
  life.calls.add(end)
  if (life.closed) end.abort(life.closed)
  const progress: Progress = { stage: 'connecting' }
  const hasTimeout = call.timeoutMs !== undefined || options.timeoutMs !== undefined
  const presented: (Credential | undefined)[] = []
  try {
    return await work({ end, progress, presented, hasTimeout })
  } catch (error) {
    if (call.signal.aborted) throw call.signal.reason
    if (error instanceof Fault) throw withoutSecrets(error, secretsOf(request, presented))
    const where = { address, proxy, stage: progress.stage, hangs: progress.hangs }
    if (isLate) throw timeoutFault(ms, where)
    throw transportFault(error, where) ?? error
  } finally {
    clearTimeout(timer)
    callsOf.get(call.signal)?.delete(end)
    life.calls.delete(end)
  }
}

/**
 * The calls in progress that a signal ends. They share a listener, because Node searches all listeners of a signal for
 * each that is added or removed. `AbortSignal.any` would take three times as long for each call.
 */
const callsOf = new WeakMap<AbortSignal, Set<AbortController>>()

function endBy(signal: AbortSignal, end: AbortController): void {
  if (signal.aborted) end.abort(signal.reason)
  const existing = callsOf.get(signal)
  if (existing) {
    existing.add(end)
    return
  }
  const calls = new Set([end])
  callsOf.set(signal, calls)
  const endAll = (): void => {
    for (const call of calls) call.abort(signal.reason)
  }
  signal.addEventListener('abort', endAll, { once: true })
}

/** The default timeout of a call in milliseconds. `fresh`: the call waits for a new run. */
export function patienceFor(request: unknown, fresh = false): number {
  const mode = (request as { readonly ExecutionMode?: ExecutionMode }).ExecutionMode
  return patience[mode ?? 'Standard'] + (fresh && mode !== undefined ? beforeFresh[mode] : 0)
}

/**
 * Loaded while the server works on the first answer, once the request is written: the event loop reports the connection
 * before it gets here.
 */
const decoder = lazy(async () => {
  await new Promise((resolve) => setImmediate(resolve))
  return await import('../protocol/wire/index.ts')
})

async function encode(operation: Operation, request: unknown): Promise<string> {
  const { encodeJson } = await import('../protocol/wire/index.ts')
  return encodeJson(operations[operation].request, request)
}

/**
 * Sends the request and follows redirects. Only the original address gets the credential (K5). Calls `came` with every
 * answer, including the last one.
 */
async function travel(
  link: Link,
  ask: ClientAsk,
  credential: Readonly<Record<string, string>>,
  request: SentRequest,
  underway: Exchanging,
  came: (received: Received) => void = () => {},
): Promise<Received> {
  let path = ask.path
  for (let followed = 0; ; followed += 1) {
    const headers = followed === 0 ? { ...ask.headers, ...credential } : ask.headers
    const received = await reach(link, { ...ask, headers, path }, request, underway)
    came(received)
    const next = redirectPath(received, request, path, followed)
    if (next === undefined) return received
    path = next
  }
}

/** One exchange, repeated with the operating system's CA list if the certificate's issuer is unknown. */
async function reach(
  link: Link,
  ask: ClientAsk,
  { operation }: SentRequest,
  { end, progress, hasTimeout }: Exchanging,
): Promise<Received> {
  const { trust } = link
  await trust.ready()
  const watch: HangWatch = {
    hasTimeout,
    askAlive: (until, alive) => send(link, aliveRequest(link), true, until, alive),
    notConnected: (ms) => timeoutFault(ms, { ...link, stage: progress.stage }),
    hanging: (silentMs, aliveMs) => hangFault(silentMs, aliveMs, link),
  }
  const once = (): Promise<Received> =>
    watchHang(end, progress, watch, () => send(link, ask, operation !== undefined, end.signal, progress))
  const widened = trust.widened
  try {
    return await once()
  } catch (error) {
    // The handshake failed, so nothing was sent and a retry is safe.
    if (widened || !isTrustError((error as NodeJS.ErrnoException).code)) throw error
    trust.widen()
    return await once()
  }
}

/** One exchange. `ours`: svc made all headers; custom requests may carry any header, so node:http sends them. */
function send(
  { address, proxy, trust }: Link,
  ask: ClientAsk,
  ours: boolean,
  signal: AbortSignal,
  progress: Progress,
): Promise<Received> {
  if (ours && !proxy && isDirect(address, ask)) return exchangeDirectly(address, ask, signal, progress)
  return exchange(address, ask, { proxy, tls: address.secure ? trust.rules() : undefined }, signal, progress)
}

/** The question whether the server lives. It carries no credential, and any answer counts. */
const aliveRequest = ({ address, options }: Link): ClientAsk => ({
  method: 'GET',
  path: `${address.prefix}/livez`,
  headers: { Accept: '*/*', 'User-Agent': options.userAgent },
  body: undefined,
})

/**
 * Reports the age of a shared answer. The run's own id does not travel over HTTP, so the answer's correlation id
 * stands in for it; the server's log holds both.
 */
function reportAge({ headers }: Received, response: unknown, call: Call): void {
  const ageSeconds = ageOf(headers)
  if (ageSeconds === undefined) return
  const { CorrelationId } = response as { readonly CorrelationId?: string }
  call.note?.({ ageSeconds, runId: CorrelationId ?? '' })
}

const ageOf = ({ age = '' }: Received['headers']): number | undefined =>
  /^\d{1,9}$/.test(age) ? Number(age) : undefined
