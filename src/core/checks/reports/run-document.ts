import { count } from '../../base/format.ts'
import { oncePerObject } from '../../base/lazy.ts'
import { usualZone } from '../../base/zone.ts'
import {
  briefMessage,
  ExecutionMode,
  faultPrefix,
  type HealthCheckRequest,
  type HealthCheckResponse,
  isLoadOf,
  type MonitoringResult,
  type MonitorSummary,
  markText,
  type RunDocument,
  type RunMonitor,
  type RunNotRun,
  type RunResult,
  type RunServerState,
  type RunSilence,
  type RunStatus,
  rehearsalMember,
  runVersion,
  type Selection,
  type ServerState,
  type ServerType,
  selectedHeadline,
  selectMonitors,
  warningPrefix,
} from '../../protocol/index.ts'
import type { DeclaredResult, MonitorReport, Result, Run } from '../engine/index.ts'
import { silencedSentence, silenceEnd, unhealthySentence } from './reading.ts'

export type RunView = RunDocument['view']

/** Whether the reader of a document may read what belongs to another server type. */
type ReadsType = (type: ServerType) => boolean

export type RunDocumentOptions = {
  readonly type: ServerType
  readonly correlationId: string
  readonly flags: Pick<HealthCheckRequest, 'IncludeServerStateInformation' | 'SuppressDeploymentErrors'>
  /** `brief` is for anonymous callers beyond loopback: no messages, hosts or figures (S11). */
  readonly view: RunView
  /** Which other types the reader may read (S11). Absent: all. */
  readonly reads?: ReadsType | undefined
  /** Its monitors for a reader who sees them in full, where they are made already. No flag has changed them. */
  readonly monitors?: readonly RunMonitor[] | undefined
}

/** The text in place of a monitor of another type, for readers who may not read that type. */
const anotherMonitor = 'a monitor of another type'

/** The types of the monitors of other types that a report names. Once for each report, which several runs may share. */
const typesNamedIn = oncePerObject(({ results }: MonitorReport): readonly ServerType[] =>
  results.some(({ elsewhere }) => elsewhere !== undefined)
    ? [...new Set(results.flatMap(({ elsewhere = [] }) => elsewhere.map(({ type }) => type)))]
    : noTypes,
)
const noTypes: readonly ServerType[] = []

/** Of each report, the one that takes its place for readers who may not read these types. */
const reportsWithoutNames = oncePerObject((_: MonitorReport) => new Map<string, MonitorReport>())

/** The report without the names of monitors of types that the reader may not read; itself where it has none. */
function withoutNames(report: MonitorReport, reads: ReadsType): MonitorReport {
  const types = typesNamedIn(report)
  const hidden = types.length === 0 ? types : types.filter((type) => !reads(type))
  if (hidden.length === 0) return report
  const byTypes = reportsWithoutNames(report)
  const key = hidden.toSorted().join(' ')
  const existing = byTypes.get(key)
  if (existing) return existing
  const made = { ...report, results: report.results.map((result) => withoutNamesIn(result, reads)) }
  byTypes.set(key, made)
  return made
}

function withoutNamesIn(result: Result, reads: ReadsType): Result {
  const hidden = (result.elsewhere ?? []).filter(({ type }) => !reads(type)).map(({ text }) => text)
  // One name may be the beginning of another.
  const names = hidden.toSorted((a, b) => b.length - a.length)
  const without = (text: string): string => names.reduce((rest, name) => rest.replaceAll(name, anotherMonitor), text)
  const { cause, message, details } = result
  return {
    ...result,
    cause: cause === undefined ? undefined : without(cause),
    message: without(message),
    details: details?.map(without),
  }
}

/** Makes the document of a run. The flags shape the document and never cause a run. */
export function runDocument(
  run: Run,
  { type, correlationId, flags, view, reads = () => true, monitors: made }: RunDocumentOptions,
): RunDocument {
  const written = flags.SuppressDeploymentErrors === true ? suppressedMonitorOf : monitorOf
  const monitors = made ?? run.monitors.map((report) => written(withoutNames(report, reads)))
  const full = view === 'full'
  const isDrill = run.monitors.some(({ drill }) => drill)
  const message = headline(type, monitors, view)
  return {
    version: runVersion,
    type,
    mode: run.mode,
    view,
    status: worstStatus(monitors),
    message: isDrill ? markText(message) : message,
    correlationId,
    ...(full ? { runId: run.id, node: run.serverState.ServerName } : {}),
    startedAt: run.startedAt,
    endedAt: run.endedAt,
    durationMs: run.durationMs,
    ...(full && flags.IncludeServerStateInformation === true ? { serverState: stateOf(run.serverState) } : {}),
    monitors: full ? monitors : monitors.map(isDrill ? briefDrill : brief),
    ...(full ? { ownPart: run.monitors.find(({ ownPart }) => ownPart !== undefined)?.ownPart } : {}),
    ...(isDrill && rehearsalMember),
  }
}

function monitorWith(report: MonitorReport, suppress: boolean): RunMonitor {
  const { name, kind, runsOn, depth, host, durationMs, attempts, tags } = report
  const index = indexOf(report.checks)
  const families = report.results.map(({ check }) => familyIn(check, index))
  const results = report.results.map((result, at) => {
    const made = resultOf(suppress ? suppressed(result) : result, families[at])
    return isLoadOf(report, result.check) ? asLoad(made) : made
  })
  const status = statusOf(report, results)
  const left = notRunIn(report, families)
  const notRun = left.length === 0 ? undefined : left
  return { name, kind, scope: runsOn, status, depth, host, tags, durationMs, attempts, results, notRun }
}

/** Once for each report, which several runs may share. */
const monitorOf = oncePerObject((report: MonitorReport) => monitorWith(report, false))
const suppressedMonitorOf = oncePerObject((report: MonitorReport) => monitorWith(report, true))

/** A report in a document without flags. Made once for each report and reader. */
export const documentOf = (report: MonitorReport, reads: ReadsType, view: RunView): RunMonitor => {
  const monitor = monitorOf(withoutNames(report, reads))
  return view === 'full' ? monitor : report.drill ? briefDrill(monitor) : brief(monitor)
}

/**
 * The part of a report about the checks of a shallower mode, or undefined where it has none of them. Made once for each
 * report.
 */
export function reportUpTo(mode: ExecutionMode, report: MonitorReport): MonitorReport | undefined {
  const byMode = reportsUpTo(report)
  if (!byMode.has(mode)) byMode.set(mode, cutTo(mode, report))
  return byMode.get(mode)
}
const reportsUpTo = oncePerObject((_: MonitorReport) => new Map<ExecutionMode, MonitorReport | undefined>())

/** The shallowest mode that includes a check of a report. */
export const depthOfCheck = (
  check: string,
  { checks, depth }: Pick<MonitorReport, 'checks' | 'depth'>,
): ExecutionMode => familyOf(check, checks)?.depth ?? depth

function cutTo(mode: ExecutionMode, report: MonitorReport): MonitorReport | undefined {
  const order = ExecutionMode.values
  const isDue = (check: string): boolean => order.indexOf(depthOfCheck(check, report)) <= order.indexOf(mode)
  const results = report.results.filter(({ check }) => isDue(check))
  const planned = report.planned?.filter(({ name }) => isDue(name))
  return results.length === 0 ? undefined : { ...report, results, planned }
}

/**
 * A deployment-related failure counts as Success and says what was suppressed (H5). What was not checked is no such
 * failure.
 */
function suppressed(result: Result): Result {
  if (!hasFailed(result) || !hasVerdict(result) || !result.deployment) return result
  return { ...result, status: 'ok', fault: undefined, message: `suppressed (deployment): ${result.message}` }
}

/**
 * Limits a result of one run about the load of the machine to a warning. A failure is what the schedule finds for the
 * whole time of `for`, and an incident says so.
 */
const asLoad = (result: RunResult): RunResult =>
  hasFailed(result) ? { ...result, status: 'warning', fault: undefined } : result

function resultOf(result: Result, family: CheckFamily | undefined): RunResult {
  const { check, status, cause, message, details, address, measurement, facts, notChecked } = result
  const subject = result.subject ?? family?.member
  return {
    check,
    slug: family?.slug ?? slugOf(check),
    status,
    fault: status === 'failed' ? (result.fault ?? 'internal') : undefined,
    cause,
    message,
    details,
    subject,
    address,
    depth: family?.depth,
    // JSON cannot express other numbers, and monitoring tools cannot use them.
    measurement: measurement && Number.isFinite(measurement.value) ? measurement : undefined,
    facts,
    notChecked,
  }
}

type Families = readonly (CheckFamily | undefined)[]

/** The checks of the plan that have no result, at each address where several were checked. `families`: of the results. */
function notRunIn({ planned = [], results }: MonitorReport, families: Families): readonly RunNotRun[] {
  const all = addressesOf(results)
  const isReached = (result: Result): boolean => !result.isUnreached || hasFailed(result)
  const addresses = all.size < 2 ? all : addressesOf(results.filter(isReached))
  const notRun: RunNotRun[] = []
  for (const one of planned) {
    const isWhole = one.elsewhere === true || addresses.size < 2
    const isDue = (_: Result, at: number): boolean => families[at]?.declared === one.name
    if (isWhole && one.items.length === 0 && results.some(isDue)) continue
    const ofCheck = results.filter(isDue)
    for (const item of one.items.length === 0 ? noItem : one.items) {
      const own = one.items.length === 0 ? ofCheck : ofCheck.filter(({ subject }) => subject === item)
      for (const address of isWhole ? (own.length > 0 ? [] : noAddress) : addressesWithout(own, addresses)) {
        const end = results.find((result, at) => isEnd(result, families[at]) && isAt(result, address))
        if (end || address !== undefined || item !== undefined)
          notRun.push({ check: one.name, subject: item, address, message: whyNotRun(end) })
        else notRun.push(nothingToReport(one))
      }
    }
  }
  return notRun
}

const noItem = [undefined]
const noAddress = [undefined]
const addressesOf = (some: readonly Result[]): ReadonlySet<string> => {
  const addresses = new Set<string>()
  for (const { address } of some) if (address !== undefined) addresses.add(address)
  return addresses
}

/** Those at which none of these results was. One without an address is about all of them. */
function addressesWithout(own: readonly Result[], addresses: ReadonlySet<string>): readonly string[] {
  const there = addressesOf(own)
  return own.length > 0 && there.size === 0 ? [] : [...addresses].filter((address) => !there.has(address))
}

/** Whether nothing ran after a result. */
const isEnd = (result: Result, family: CheckFamily | undefined): boolean =>
  result.isLast === true || (hasFailed(result) && !family)

const isAt = (result: Result, address: string | undefined): boolean =>
  address === undefined || result.address === undefined || result.address === address

/** Of a check without a result and without a reason, the same in all runs of its monitor. */
const nothingToReport = oncePerObject(
  ({ name }: NonNullable<MonitorReport['planned']>[number]): RunNotRun => ({
    check: name,
    subject: undefined,
    address: undefined,
    message: whyNotRun(undefined),
  }),
)

function whyNotRun(end: Result | undefined): string {
  if (end === undefined) return 'nothing to report here'
  if (end.message.startsWith('not run: ')) return end.message
  return `not run: ${end.check} ${hasVerdict(end) ? 'failed' : 'was not checked'}`
}

type CheckFamily = {
  readonly declared: string
  /** The name in metrics. */
  readonly slug: string
  readonly depth: ExecutionMode
  readonly member: string | undefined
}

type Declared = Pick<DeclaredResult, 'name' | 'depth'>

/**
 * The declaration of a check, by its name or as a member of a family: `disk <mount>` declares `disk /data`, whose
 * member is `/data`. Undefined for a check that is not declared: `not run`.
 */
const familyOf = (check: string, declared: readonly Declared[]): CheckFamily | undefined =>
  familyIn(check, indexOf(declared))

function familyIn(check: string, { byName, families }: ReturnType<typeof indexOf>): CheckFamily | undefined {
  const exact = byName.get(check)
  // The first declaration counts.
  for (const one of families) {
    if (exact && exact.at <= one.at) break
    const member = memberOf(check, one)
    if (member !== undefined) return { declared: one.name, slug: one.slug, depth: one.depth, member }
  }
  return exact
}

/** Whether a result declares a check. */
export const isDeclaredBy = (check: string, { name }: Declared): boolean =>
  name === check || (name.includes('<') && memberOf(check, partsOf(name)) !== undefined)

type Parts = { readonly before: string; readonly after: string }

function partsOf(name: string): Parts {
  const from = name.indexOf('<')
  return { before: name.slice(0, from), after: name.slice(name.indexOf('>', from) + 1) }
}

const memberOf = (check: string, { before, after }: Parts): string | undefined =>
  check.startsWith(before) && check.endsWith(after)
    ? check.slice(before.length, check.length - after.length)
    : undefined

/** The declarations of a kind by their names, and its families apart. */
const indexOf = oncePerObject((declared: readonly Declared[]) => {
  const byName = new Map<string, CheckFamily & { readonly at: number }>()
  const families = declared.flatMap(({ name, depth }, at) => {
    const isFamily = name.includes('<')
    if (!byName.has(name)) byName.set(name, { declared: name, slug: slugOf(name), depth, member: undefined, at })
    if (!isFamily) return []
    const parts = partsOf(name)
    return [{ ...parts, name, depth, at, slug: slugOf(parts.before + parts.after) }]
  })
  return { byName, families }
})

/** The name in metrics of a check, which may be a member of a declared family. */
export const slugIn = (declared: readonly DeclaredResult[], check: string): string =>
  familyOf(check, declared)?.slug ?? slugOf(check)

/** The name of a check in metrics: lower-case ASCII letters and digits, joined by underscores. */
export const slugOf = (check: string): string =>
  isSlug.test(check)
    ? check
    : check
        .toLowerCase()
        .replace(/[^a-z0-9]+/g, '_')
        .replace(/^_|_$/g, '') || 'check'
/** Most names of checks are one word, and what is a slug already stays as it is. */
const isSlug = /^[a-z0-9]+(?:_[a-z0-9]+)*$/

const brief = oncePerObject(
  ({ kind, scope, status, results, notRun }: RunMonitor): RunMonitor => ({
    kind,
    scope,
    status,
    results: results.map(({ check, slug, status: own, fault, notChecked }) => ({
      check,
      slug,
      status: own,
      fault,
      notChecked,
    })),
    ...(notRun && { notRun: notRun.map(({ check }) => ({ check })) }),
  }),
)

/** The same of a rehearsal, whose mark is no secret. */
const briefDrill = oncePerObject((monitor: RunMonitor): RunMonitor => {
  const short = brief(monitor)
  return {
    ...short,
    results: short.results.map((result) => ({ ...result, message: markText(briefMessage(result)) })),
  }
})

/** Converts the interface's ServerState to the names of the run document. */
export const stateOf = ({
  ServerName,
  TotalRamInMb,
  AvailableRamInMb,
  UsedCpuPercent,
}: ServerState): RunServerState => ({
  serverName: ServerName,
  totalRamInMb: TotalRamInMb,
  availableRamInMb: AvailableRamInMb,
  usedCpuPercent: UsedCpuPercent,
})

const order: Record<RunStatus, number> = { ok: 0, warning: 1, failed: 2 }
/** The worst status. Nothing at all is not ok: nobody has looked. */
export const worstStatus = (all: readonly { readonly status: RunStatus }[]): RunStatus =>
  all.length === 0
    ? 'failed'
    : all.reduce<RunStatus>((worst, { status }) => (order[status] > order[worst] ? status : worst), 'ok')

/** The results that count for the status of their monitor: all but those about the load of the machine. */
const counting = (monitor: Pick<RunMonitor, 'kind' | 'host'>, results: readonly RunResult[]): readonly RunResult[] =>
  results.some(({ check }) => isLoadOf(monitor, check))
    ? results.filter(({ check }) => !isLoadOf(monitor, check))
    : results

/** The status of a monitor with these results. */
function statusOf(monitor: Pick<RunMonitor, 'kind' | 'host'>, results: readonly RunResult[]): RunStatus {
  const counted = counting(monitor, results)
  return counted.length === 0 && results.length > 0 ? 'ok' : worstStatus(counted)
}

const hasFailed = ({ status }: { readonly status: RunStatus }): boolean => status === 'failed'
const hasVerdict = ({ notChecked }: Pick<RunResult, 'notChecked'>): boolean => notChecked === undefined

/** Whether nothing of a failed monitor really failed: all its failures were not checked. */
const isUnchecked = ({ status, results }: RunMonitor): boolean => {
  const failures = results.filter(hasFailed)
  return status === 'failed' && failures.length > 0 && !failures.some(hasVerdict)
}

/** The line for a pager: root causes only, without the monitors that did not run because of them. */
function headline(type: ServerType, monitors: readonly RunMonitor[], view: RunView): string {
  const total = monitors.length
  const sentences = (belongs: (result: RunResult) => boolean): string[] =>
    // Of a monitor that is ok, no result that counts says anything.
    monitors.flatMap((monitor) =>
      (monitor.status === 'ok' ? [] : counting(monitor, monitor.results))
        .filter((result) => belongs(result) && result.fault !== 'dependency')
        .map((result) => sentence(monitor, result)),
    )
  if (total === 0) return unhealthySentence(type, 0, 0, 0)
  if (monitors.some(hasFailed)) {
    const unchecked = monitors.filter(isUnchecked).length
    const opening = unhealthySentence(type, monitors.filter(hasFailed).length - unchecked, unchecked, total)
    const causes = [
      ...sentences((result) => hasFailed(result) && hasVerdict(result)),
      ...sentences((result) => hasFailed(result) && !hasVerdict(result)),
    ]
    // Where everything that failed depends on monitors of other types, no result of this type is a cause.
    const why = causes.length > 0 ? causes : consequencesIn(monitors)
    return view === 'full' ? `${opening}: ${why.join('; ')}` : opening
  }
  const warnings = sentences(({ status }) => status === 'warning')
  if (warnings.length === 0) return `${type} is healthy: ${count(total, 'monitor')} passed`
  const opening = `${type} is healthy, ${count(warnings.length, 'warning')}`
  return view === 'full' ? `${opening}: ${warnings.join('; ')}` : opening
}

/** The reasons that kept monitors from running, each once. */
const consequencesIn = (monitors: readonly RunMonitor[]): readonly string[] => [
  ...new Set(monitors.flatMap(({ results }) => results.filter(hasFailed).map((result) => result.message ?? ''))),
]

/** Why nobody is notified about a result, by the places of its monitor in the run and of itself in the monitor. */
export type SilencedResults = (monitor: number, result: number) => RunSilence | undefined

/**
 * A run whose results say that they are silenced. With `honors`, silenced failures and warnings count as ok, and the document says
 * so; what was not checked counts as before. `names`: whether the reader learns who silenced them, and why. Returns the same document if
 * nothing is silenced.
 */
export function withSilences(
  run: RunDocument,
  silenceOf: SilencedResults,
  { honors, names }: { readonly honors: boolean; readonly names: boolean },
): RunDocument {
  let honored = 0
  let marked = 0
  const monitors = run.monitors.map((monitor, at): RunMonitor => {
    const results = monitor.results.map((result, index): RunResult => {
      const silence = result.status === 'ok' ? undefined : silenceOf(at, index)
      if (!silence) return result
      marked += 1
      const own: RunSilence = names ? silence : { source: silence.source, until: silence.until }
      const mark = run.view === 'full' ? { silence: own } : {}
      if (!honors || !hasVerdict(result)) return { ...result, ...mark }
      honored += 1
      const message = result.message === undefined ? undefined : `not counted (${silenceText(own)}): ${result.message}`
      return { ...result, ...mark, status: 'ok', fault: undefined, message }
    })
    return { ...monitor, results, status: statusOf(monitor, results) }
  })
  if (marked === 0) return run
  const { type, view } = run
  const left = headline(type, monitors, view)
  const message = markedAs(run.drill, [left, silencedSentence(honored) ?? []].flat().join('; '))
  return {
    ...run,
    monitors,
    status: worstStatus(monitors),
    message,
    ...(honored === 0 ? {} : { silencedResults: honored }),
  }
}

const markedAs = (isDrill: boolean | undefined, message: string): string => (isDrill ? markText(message) : message)

/** Whether a result counts as ok because it is silenced. */
const isHonored = ({ status, silence }: RunResult): boolean => status === 'ok' && silence !== undefined

/** Prefixes the message with its monitor, except for Configuration monitors. */
function sentence(monitor: RunMonitor, result: RunResult): string {
  const { check, message, notChecked } = result
  if (monitor.kind !== 'configuration') return `${monitor.name} ${check}: ${messageOf(result)}`
  return notChecked === undefined ? (message ?? '') : `${monitor.name}: ${message}`
}

/** The message of a result, or its replacement when the view leaves messages out. Says if nobody is notified about it. */
export const messageOf = (result: RunResult): string => {
  const message = result.message ?? briefMessage(result)
  return result.silence === undefined || result.status === 'ok'
    ? message
    : `${message} (${silenceText(result.silence)})`
}

/** `silenced until 2026-11-29 04:00 UTC, alice: patch night` */
export function silenceText({ source, until, by, reason }: RunSilence): string {
  const state = source === 'ack' ? 'acknowledged' : `silenced until ${silenceEnd(until, usualZone)}`
  const why = [by, reason].filter((part) => part !== undefined && part !== '').join(': ')
  return why === '' ? state : `${state}, ${why}`
}

/** The interface's document of a run: two states, with warnings and fault classes as text (H11). */
export function healthCheckResponse(run: RunDocument): HealthCheckResponse {
  return {
    ...(run.serverState ? { ServerState: serverState(run.serverState) } : {}),
    Status: run.status === 'failed' ? 'Failure' : 'Success',
    StatusMessage: run.message,
    CorrelationId: run.correlationId,
    FailedMonitorCount: run.monitors.filter(hasFailed).length,
    MonitorSummaries: run.monitors.map((monitor) => summaryOf(monitor, run.view)),
    ExecutionMetrics: { StartDateTime: run.startedAt, EndDateTime: run.endedAt, Duration: run.durationMs },
  }
}

const serverState = (state: RunServerState): ServerState => ({
  ServerName: state.serverName,
  TotalRamInMb: state.totalRamInMb,
  AvailableRamInMb: state.availableRamInMb,
  UsedCpuPercent: state.usedCpuPercent,
})

function summaryOf(monitor: RunMonitor, view: RunView): MonitorSummary {
  const failures = monitor.results.filter(hasFailed)
  return {
    MonitorName: monitor.name ?? monitor.kind,
    Status: hasFailed(monitor) ? 'Failure' : 'Success',
    Results: monitor.results.map(monitoringResult),
    ErrorMessages: view === 'full' ? failures.map((result) => `${result.check}: ${messageOf(result)}`) : [],
  }
}

const monitoringResult = (result: RunResult): MonitoringResult => ({
  MonitoringName: result.check,
  Status: hasFailed(result) ? 'Failure' : 'Success',
  StatusMessage: result.status === 'warning' ? `${warningPrefix}${messageOf(result)}` : messageOf(result),
  ErrorMessages: [
    ...(result.details ?? []),
    ...(hasFailed(result) ? [`${faultPrefix}${result.fault ?? 'internal'}`] : []),
  ],
})

/**
 * Reduces a run to the selected monitors and checks, as `select` reduces the interface's document. Returns the same
 * run when it removes nothing. Throws `Fault` Usage when nothing is left.
 */
export function selectRun(run: RunDocument, selection: Selection): RunDocument {
  const monitors = selectMonitors(run.monitors, selection, {
    namesOf: (monitor) => ({
      name: monitor.name ?? monitor.kind,
      checks: monitor.results.map(({ check }) => check),
    }),
    reduce: (monitor, checks) => {
      const results = monitor.results.filter((_, index) => checks.includes(index))
      // A failure that no check explains is the monitor's own and remains.
      const unclaimed = hasFailed(monitor) && !monitor.results.some(hasFailed)
      const left = monitor.notRun?.filter(({ check }) => results.some((result) => result.check === check)) ?? []
      const notRun = left.length === 0 ? undefined : left
      return { ...monitor, results, notRun, status: unclaimed ? monitor.status : statusOf(monitor, results) }
    },
  })
  if (!monitors) return run
  // A failure that no monitor explains is the server's own and remains.
  const unclaimed = hasFailed(run) && !run.monitors.some(hasFailed)
  const failed = monitors.filter(hasFailed).map((monitor) => {
    const failures = monitor.results.filter(hasFailed)
    const name = monitor.name ?? monitor.kind
    if (failures.length === 0) return [`${name}: failed`]
    return failures.map((result) => `${name} ${result.check}: ${messageOf(result)}`)
  })
  const { silencedResults: before, ...rest } = run
  // Only the full view marks them.
  const silencedResults =
    before === undefined || run.view !== 'full'
      ? before
      : monitors.flatMap(({ results }) => results).filter(isHonored).length
  const left = selectedHeadline(failed, monitors.length, run.monitors.length, monitors.filter(isUnchecked).length)
  return {
    ...rest,
    status: unclaimed ? run.status : worstStatus(monitors),
    message: unclaimed
      ? run.message
      : markedAs(run.drill, [left, silencedSentence(silencedResults) ?? []].flat().join('; ')),
    monitors,
    ...(silencedResults === undefined || silencedResults === 0 ? {} : { silencedResults }),
  }
}

export type RunDocuments = { readonly run: RunDocument; readonly response: HealthCheckResponse }
type Flags = RunDocumentOptions['flags']
/** How much of the runs of a server type a reader may see. */
export type ViewOfType = (type: ServerType) => RunView
export type DocumentsOf = (run: Run, type: ServerType, flags: Flags, views: ViewOfType) => RunDocuments

/**
 * The documents of a run without the correlation id, each made once and kept as long as the run. Callers that share the
 * run with the same options share them, and so can keep what they write of them.
 */
export function rememberDocuments(): DocumentsOf {
  type OfRun = { readonly typesNamed: readonly ServerType[]; readonly documents: Map<string, RunDocuments> }
  const documentsByRun = new WeakMap<Run, OfRun>()
  return (run, type, flags, views) => {
    const ofRun = documentsByRun.get(run) ?? {
      typesNamed: [...new Set(run.monitors.flatMap(typesNamedIn))],
      documents: new Map(),
    }
    documentsByRun.set(run, ofRun)
    const { typesNamed, documents } = ofRun
    const view = views(type)
    const hidden = typesNamed.filter((other) => views(other) !== 'full')
    const key = `${hidden.join(' ')} ${view} ${flags.IncludeServerStateInformation === true} ${flags.SuppressDeploymentErrors === true}`
    const before = documents.get(key)
    if (before) return before
    const reads: ReadsType = (other) => !hidden.includes(other)
    const document = runDocument(run, { type, correlationId: '', flags, view, reads })
    const made = { run: document, response: healthCheckResponse(document) }
    documents.set(key, made)
    return made
  }
}
