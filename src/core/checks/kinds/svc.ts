import { Fault } from '../../base/errors.ts'
import { count, showBytes, showDuration } from '../../base/format.ts'
import { asksPeerAt, type Route, verifySetting } from '../../base/net/http/route.ts'
import { readJson } from '../../base/net/json.ts'
import { quote, type Redact, sanitize } from '../../base/net/text.ts'
import { trustSettings } from '../../base/net/trust.ts'
import { urlTarget } from '../../base/net/url.ts'
import { type FaultClass, faultClasses } from '../../base/probe-error.ts'
import type { SettingsSpec, Values } from '../../base/settings/index.ts'
import {
  briefMessage,
  ExecutionMode,
  inPascalCase,
  isLoadOf,
  isLoadSubject,
  type RunDocument,
  type RunMeasurement,
  type RunMonitor,
  type RunResult,
  runMediaType,
  ServerType,
  warningIn,
} from '../../protocol/index.ts'
import { decodeRun, isRunType } from '../../protocol/wire/index.ts'
import { type Content, evaluateHealth, evaluateHealthDocument } from '../assert/content.ts'
import { loadXmlParser } from '../assert/xml.ts'
import {
  type AddressTurn,
  atMost,
  type CheckContext,
  checksOn,
  evaluateAccepted,
  fail,
  ignoredHeaders,
  latencySetting,
  type Measurement,
  type NotCheckedReason,
  networkKind,
  notChecked,
  notCheckedReasons,
  type Result,
  reallyFailed,
  sharedRead,
  warn,
} from '../engine/index.ts'
import {
  declineForPeer,
  declineOwnProcess,
  openRequest,
  type RequestConnection,
  routeOf,
  signsIn,
  urlProblem,
} from './http/index.ts'

/** Maximum bytes read of an answer: of the interface's document, and of a run document, which is larger. */
const maxBody = 1024 * 1024
const maxRunBody = 4 * maxBody

const peerSettings = {
  url: { type: 'url', protocols: ['http', 'https'], required: true, doc: 'URL of the server, or of its /healthcheck' },
  type: {
    type: 'choice',
    observed: true,
    values: ServerType.values,
    default: 'App',
    doc: 'Server type to query there',
  },
  mode: {
    type: 'choice',
    values: ExecutionMode.values,
    default: 'Standard',
    doc: 'Deepest mode to request there; a shallower run requests only its own mode',
  },
  token: {
    type: 'secret',
    form: 'header',
    doc: 'Token or key for that server, needed for details; sent from Standard on',
  },
  insecureHttp: { type: 'flag', default: false, doc: 'Send the token over http:// even to another machine' },
  suppressDeployment: {
    type: 'flag',
    default: false,
    doc: 'Request that the server ignores its own deployment-related failures',
  },
  verify: verifySetting,
  ...trustSettings,
} as const satisfies SettingsSpec
type PeerSettings = Values<typeof peerSettings>

/** The URL to request for a run in `mode`. With these parameters, the peer answers every health result with 200. */
function peerUrl(settings: PeerSettings, mode: ExecutionMode): URL {
  const url = new URL(settings.url)
  if (!asksPeerAt(url)) url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/, '')}/healthcheck`
  const order = ExecutionMode.values
  const depth = Math.min(order.indexOf(settings.mode), order.indexOf(mode))
  url.searchParams.set('ExecutionMode', order[depth] ?? 'Basic')
  url.searchParams.set('ServerType', settings.type)
  url.searchParams.set('SuppressErrorCodes', 'true')
  if (settings.suppressDeployment) url.searchParams.set('SuppressDeploymentErrors', 'true')
  return url
}

/** Includes the interface's JSON, so that a server that does not support run documents answers with it. */
const accept = `${runMediaType}, application/json`

async function preparePeer(settings: PeerSettings, context: CheckContext): Promise<Route> {
  const url = peerUrl(settings, context.mode)
  context.step('connect', url.host)
  // The peer then ends its run before our deadline, and answers with the results that it has by then.
  const headers = { 'X-Prometheus-Scrape-Timeout-Seconds': (context.msLeft() / 1_000).toFixed(3) }
  const { token, insecureHttp, verify, servername, caFile, fingerprint, clientCert, clientKey } = settings
  const trust = { verify, servername, caFile, fingerprint, clientCert, clientKey }
  const request = { url: url.href, method: 'GET', headers, token, insecureHttp, redirects: 0, ...trust } as const
  return await routeOf(request, url, { mode: context.mode, accept, asksPeer: true, files: context.files })
}

const openPeer = (at: AddressTurn, _: PeerSettings, context: CheckContext, route: Route): Promise<RequestConnection> =>
  openRequest(at, route, context)

const check = checksOn<RequestConnection>()
const healthDoc = 'The health response reports Success; failed monitors are named'

const answer = sharedRead('health', healthDoc, async ({ at, route, openedMs, request }: RequestConnection, context) => {
  const { head } = await request(context)
  context.step('health')
  const asRun = isRunType(head.headers['content-type'] ?? '')
  const { bytes: body, more } = await head.read(asRun ? maxRunBody : maxBody)
  const ms = context.now() - openedMs
  const { redact, signsIn: signedIn } = route
  const { status, headers } = head
  const { address } = at
  const run = asRun ? readRun(body, more) : undefined
  return { address, headers, body, more, redact, at: context.date(), xml: undefined, status, signedIn, run, ms }
})

/** The run document of another svc, or why it cannot be read. */
type PeerRun = { readonly run: RunDocument } | { readonly problem: string }

function readRun(body: Buffer, more: boolean): PeerRun {
  if (more) return { problem: `The server's run document is longer than ${showBytes(maxRunBody)}` }
  try {
    return { run: decodeRun(body.toString('utf8')) }
  } catch (error) {
    if (error instanceof Fault) return { problem: error.message }
    throw error
  }
}

const health = check({
  depth: 'Basic',
  results: { health: healthDoc },
  observe: answer,
  evaluate: evaluatePeer,
})

const latency = check({
  depth: 'Basic',
  results: { latency: 'The complete response arrives in time' },
  settings: {
    latency: latencySetting({}, 'Maximum time for the complete response; default: the timeout of this monitor'),
  },
  observe: answer,
  evaluate: ({ address, body, ms }, { latency: threshold }) => {
    const what = `${address} answered ${showBytes(body.length)} in`
    return atMost({ check: 'latency', what, value: ms, unit: 'duration', threshold })
  },
})

const remoteChecks = check({
  depth: 'Basic',
  results: {
    'remote check':
      'Each check on the other svc that measures something, warns or fails; requires the same version there',
  },
  observe: answer,
  evaluate: ({ address, redact, run }) => (run && 'run' in run ? evaluateRemote(run.run, address, redact) : []),
})

type PeerAnswer = Content & {
  readonly status: number
  readonly signedIn: boolean
  /** Undefined if the peer answered with the interface's document. */
  readonly run: PeerRun | undefined
}

/**
 * The maximum number of failed monitors in the message, of warnings in the details, and of remote checks as results.
 */
const maxNames = 5
const maxWarnings = 10
const maxRemoteChecks = 200

/** Evaluates another server's health answer as one result: failed monitors by name, warnings as details. */
function evaluatePeer(answer: PeerAnswer): Result<'health'> {
  const result = withRejectedToken(withLeftOut(evaluateAnswer(answer), answer.run), answer)
  const age = Number(/^\d{1,9}$/.exec(answer.headers['age'] ?? '')?.[0] ?? 0)
  return age > 1 ? { ...result, message: `${result.message}; checked there ${showDuration(age * 1_000)} ago` } : result
}

function withLeftOut(result: Result<'health'>, run: PeerRun | undefined): Result<'health'> {
  const more = run && 'run' in run ? remoteOf(run.run.monitors).length - maxRemoteChecks : 0
  if (more <= 0) return result
  return { ...result, details: [...(result.details ?? []), `(${count(more, 'more check')} there not shown)`] }
}

/** svc answers anyone with the status, so that a rejected token shows only in the messages that are missing. */
function withRejectedToken(result: Result<'health'>, { address, signedIn, run }: PeerAnswer): Result<'health'> {
  if (!signedIn || !run || !('run' in run) || run.run.view === 'full') return result
  const rejected = `${address} did not accept the token of this monitor, and sent no messages: it may have been revoked`
  if (result.status !== 'ok') return { ...result, details: [rejected, ...(result.details ?? [])] }
  return warn('health', `${result.message}; ${rejected}`, { address })
}

function evaluateAnswer(answer: PeerAnswer): Result<'health'> {
  const { address, status, redact, run } = answer
  if (run && 'problem' in run) return fail('health', 'protocol', `${address}: ${run.problem}`, { address })
  const body = run ? documentOfRun(run.run) : documentOf(answer)
  // A draining server answers 503 without a status; a server that does not suppress error codes answers 503 with one.
  if (status !== 200 && typeof body['Status'] !== 'string') return evaluateRefusal(answer, body)
  const result = run ? evaluateHealthDocument(answer, body) : evaluateHealth(answer)
  if (result.status === 'failed') {
    const unchecked = run ? uncheckedThere(run.run) : []
    const [first] = unchecked
    if (first) {
      const there = [...new Set(unchecked.map(({ monitor }) => sanitize(redact(nameOf(monitor)), 80)))]
      const rest = there.length > maxNames ? ` and ${there.length - maxNames} more` : ''
      const why = `nothing failed on ${address}, but not checked there: ${there.slice(0, maxNames).join(', ')}${rest}`
      return notChecked('health', reasonOf(first.one.notChecked), why, { address })
    }
    const names = failedMonitors(body).map((name) => sanitize(redact(name), 80))
    if (names.length === 0) return result
    const more = names.length > maxNames ? ` and ${names.length - maxNames} more` : ''
    return { ...result, message: `${result.message}; failed there: ${names.slice(0, maxNames).join(', ')}${more}` }
  }
  const warnings = result.status === 'ok' ? (run ? warningsOfRun(run.run) : warningsIn(body)) : []
  const [first] = warnings
  if (first === undefined) return result
  const message = `${address} reports Success with ${count(warnings.length, 'warning')}: ${quote(redact(first), 160)}`
  return warn('health', message, { address, details: warnings.slice(0, maxWarnings).map((one) => redact(one)) })
}

function evaluateRefusal({ address, status, signedIn, redact }: PeerAnswer, body: Body): Result<'health'> {
  const error = (body['ResponseStatus'] ?? {}) as Body
  const words = typeof error === 'object' && typeof error['Message'] === 'string' ? error['Message'] : ''
  const text = `${address} answered ${status}${words === '' ? '' : `: ${quote(redact(words), 160)}`}`
  const more: Partial<Result> = { address, measurement: { value: status, unit: 'count' } }
  if (status === 401 || status === 403) {
    return fail('health', 'auth', `${text}${signedIn ? ': it rejected the token of this monitor' : ''}`, more)
  }
  if (status === 404 || status === 405) {
    return fail('health', 'protocol', `${text}: no health endpoint at this URL`, more)
  }
  return fail('health', 'protocol', text, more)
}

type Body = Readonly<Record<string, unknown>>

function documentOf({ body, more }: PeerAnswer): Body {
  if (more) return {}
  const read = readJson(body.toString('utf8'))
  const value = 'json' in read ? inPascalCase(read.json) : undefined
  return typeof value === 'object' && value !== null ? (value as Body) : {}
}

/** The objects among the values, limited so that a hostile answer cannot make svc read without end. */
const records = (value: unknown): readonly Body[] =>
  (Array.isArray(value) ? value.slice(0, 1_000) : []).filter(
    (one): one is Body => typeof one === 'object' && one !== null,
  )

const failedMonitors = (body: Body): readonly string[] =>
  records(body['MonitorSummaries']).flatMap(({ MonitorName: name, Status: status }) =>
    status === 'Failure' && typeof name === 'string' ? [name] : [],
  )

const warningsIn = (body: Body): readonly string[] =>
  records(body['MonitorSummaries']).flatMap(({ MonitorName: monitor, Results: results }) =>
    records(results).flatMap(({ MonitoringName: check, StatusMessage: message }) =>
      warningLines(
        `${String(monitor)} ${String(check)}`,
        typeof message === 'string' && !isLoadSubject({ monitor: String(monitor), check: String(check) })
          ? warningIn(message)
          : undefined,
      ),
    ),
  )

const warningLines = (of: string, warning: string | undefined): readonly string[] =>
  warning === undefined ? [] : [`${of}: ${warning}`]

const hasFailed = ({ status }: { readonly status: string }): boolean => status === 'failed'
/** The peer sends no messages to callers who are not signed in. */
const messageOf = (result: RunResult): string =>
  result.message ?? briefMessage({ ...result, fault: faultOf(result.fault) })
const nameOf = ({ name, kind }: RunMonitor): string => name ?? kind

/** Reduces a run document to the parts of the interface's document that decide the status. */
function documentOfRun({ status, message, view, monitors }: RunDocument): Body {
  return {
    Status: status === 'failed' ? 'Failure' : 'Success',
    StatusMessage: message,
    FailedMonitorCount: monitors.filter(hasFailed).length,
    MonitorSummaries: monitors.map((monitor) => ({
      MonitorName: nameOf(monitor),
      Status: hasFailed(monitor) ? 'Failure' : 'Success',
      ErrorMessages:
        view === 'full' ? monitor.results.filter(hasFailed).map((one) => `${one.check}: ${messageOf(one)}`) : [],
    })),
  }
}

const warningsOfRun = ({ monitors }: RunDocument): readonly string[] =>
  monitors.flatMap((monitor) =>
    monitor.results.flatMap((one) =>
      warningLines(
        `${nameOf(monitor)} ${one.check}`,
        one.status === 'warning' && !isLoadOf(monitor, one.check) ? messageOf(one) : undefined,
      ),
    ),
  )

/** The results that were not checked on the peer, if nothing really failed there. */
function uncheckedThere({ monitors }: RunDocument) {
  const failures = monitors.flatMap((monitor) => monitor.results.filter(hasFailed).map((one) => ({ monitor, one })))
  const explained = monitors.every((monitor) => !hasFailed(monitor) || monitor.results.some(hasFailed))
  return explained && !failures.some(({ one }) => reallyFailed(one)) ? failures : []
}

/** A later version of svc may use other reasons. */
const reasonOf = (reason: string | undefined): NotCheckedReason =>
  notCheckedReasons.find((one) => one === reason) ?? 'missing'

const rank: Readonly<Record<RunResult['status'], number>> = { failed: 0, warning: 1, ok: 2 }

/** Every remote check that has a measurement, a warning or a failure, the worst first. */
const remoteOf = (monitors: readonly RunMonitor[]) =>
  monitors
    .flatMap((monitor) => monitor.results.map((one) => ({ monitor, one, measurement: figureOf(one.measurement) })))
    .filter(({ one, measurement }) => one.status !== 'ok' || measurement !== undefined)
    .toSorted((a, b) => rank[a.one.status] - rank[b.one.status])

/** Reports those checks as results of this monitor: with their statuses, fault classes and measurements. */
function evaluateRemote({ monitors }: RunDocument, address: string, redact: Redact): readonly Result<'remote check'>[] {
  const subjects = new Set<string>()
  const subjectOf = (parts: readonly (string | undefined)[]): string =>
    sanitize(redact(parts.filter((part) => part !== undefined && part !== '').join(' ')), 160)
  return remoteOf(monitors)
    .slice(0, maxRemoteChecks)
    .map(({ monitor, one, measurement }) => {
      const short = subjectOf([nameOf(monitor), one.check, one.subject])
      // Checks of several addresses share one name; the address distinguishes them.
      const subject = subjects.has(short) ? subjectOf([nameOf(monitor), one.check, one.subject, one.address]) : short
      subjects.add(subject)
      return {
        check: 'remote check',
        status: one.status,
        fault: one.status === 'failed' ? faultOf(one.fault) : undefined,
        message: `${subject}: ${sanitize(redact(messageOf(one)))}`,
        details: one.details?.slice(0, maxWarnings).map((line) => sanitize(redact(line))),
        measurement,
        subject,
        address,
        foundElsewhere: true,
        notChecked: one.notChecked === undefined ? undefined : reasonOf(one.notChecked),
      }
    })
}

/** A later version of svc may use other fault classes. */
const faultOf = (fault: string | undefined): FaultClass => faultClasses.find((one) => one === fault) ?? 'internal'

const baseUnits: Readonly<Record<Measurement['unit'], true>> = {
  milliseconds: true,
  bytes: true,
  percent: true,
  ratio: true,
  count: true,
  days: true,
}
const isUnit = (unit: string): unit is Measurement['unit'] => Object.hasOwn(baseUnits, unit)

function figureOf(measured: RunMeasurement | undefined): Measurement | undefined {
  if (measured === undefined) return undefined
  const { unit, ...figure } = measured
  return isUnit(unit) ? { ...figure, unit } : undefined
}

/**
 * Another server's own health check. Only one hop is queried: a run that another svc requested makes no further
 * requests, and no process queries itself.
 */
export default networkKind({
  name: 'svc',
  title: 'The /healthcheck of another svc, or of a compatible server, reports Success',
  exposure:
    'What its user may do at the other svc. With the permission health, or health:TYPE for one type, it reads details of health and starts checks.',
  // Discovery recognizes an HTTP server.
  recognition: 'none',
  preload: loadXmlParser,
  optionalParts: [
    {
      part: 'User-Agent, Accept, Accept-Encoding, Cache-Control, X-Svc-Hops, X-Prometheus-Scrape-Timeout-Seconds',
      unasked: ignoredHeaders,
    },
  ],
  cost: {
    unit: 'HTTP requests',
    Basic: [1, 1],
    Standard: [1, 1],
    Advanced: [1, 1],
    adds: [{ setting: 'token', from: 'Standard', signIns: 1 }],
    besides: 'What the other svc then sends to its own servers is not included.',
  },
  settings: peerSettings,
  target: urlTarget,
  signsIn: (settings, mode) => {
    const account = signsIn(settings, mode)
    return account && { ...account, result: 'health' }
  },
  validate: urlProblem,
  declineRun: (_, context) => declineForPeer(context),
  declineAddress: (at, _, context) => declineOwnProcess(at, context),
  prepare: preparePeer,
  connect: {
    results: { connect: 'The port accepts a connection; over https the certificate is trusted and for this server' },
    open: openPeer,
    evaluate: ({ connection: { at, chain }, ms }) => evaluateAccepted('connect', { address: at.address, chain, ms }),
  },
  checks: [health, latency, remoteChecks],
})
