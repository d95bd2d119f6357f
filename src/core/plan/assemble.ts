import { includes, type PlannedMonitor } from '../engine/index.ts'
import { Fault } from '../errors.ts'
import type { KindName } from '../kinds/index.ts'
import type { ExecutionMode, ServerType } from '../protocol/index.ts'
import { readSettings } from '../settings/index.ts'
import { depthOf, hostKind, loadKind, monitorName } from './registry.ts'
import { type MonitorEntry, type OwnParts, plans } from './server-types.ts'

/** The kind of every notice. */
export const noticeKind = 'configuration' satisfies KindName

/** A monitor that says one line: what the configuration lacks, or why a part could not be looked at. */
export async function notice(name: string, level: 'warn' | 'fail', message: string): Promise<PlannedMonitor> {
  const kind = await loadKind(noticeKind)
  return {
    name,
    kind,
    settings: { message, level },
    depth: 'Basic',
    host: false,
    dependsOn: [],
    retries: 0,
    deployment: false,
  }
}

type ListeningPort = { readonly port: number; readonly what: string; readonly banner?: string | undefined }

export type AssembleOptions = {
  /** The type's monitors in svc.yaml. */
  readonly configured: readonly PlannedMonitor[]
  /** What svc.yaml sets of the host block, or false to leave it out. */
  readonly host: Readonly<Record<string, unknown>> | false
  readonly parts: OwnParts
  /** Which of a type's usual ports listen on this machine: connect and banner, never a sign-in. */
  readonly listening: (
    ports: readonly { readonly port: number; readonly what: string }[],
    signal: AbortSignal,
  ) => Promise<readonly ListeningPort[]>
  readonly signal: AbortSignal
  /** The mode of the run, where it is known: then a plan of which nothing is due says so. */
  readonly mode?: ExecutionMode | undefined
}

/**
 * The monitors of one server type. Never a plan that could succeed without having looked at
 * anything of that type: the host block alone does not count.
 */
export async function assemble(type: ServerType, options: AssembleOptions): Promise<readonly PlannedMonitor[]> {
  const { configured, host, mode } = options
  const block = host === false ? [] : [await hostBlock(host)]
  if (configured.length === 0) return [...block, ...(await unconfigured(type, options))]
  const shallowest = configured.map((monitor) => monitor.depth).reduce((a, b) => (includes(a, b) ? b : a))
  if (mode === undefined || includes(mode, shallowest)) return [...block, ...configured]
  const message = `${type}: nothing of it is checked in ${mode}: its monitors begin in ${shallowest}, use --mode ${shallowest}`
  return [...block, ...configured, await notice('Configuration', 'fail', message)]
}

/** What says which usual ports are listened on. */
const listeningKind = 'listening' satisfies KindName

/** The kinds of all monitors that svc plans by itself, whatever is configured. */
export const ownKinds = (parts: OwnParts): readonly KindName[] => [
  hostKind,
  noticeKind,
  listeningKind,
  ...Object.values(plans).flatMap((plan) => (plan.own?.(parts) ?? []).map(({ kind }) => kind)),
]

const hostBlock = (settings: Readonly<Record<string, unknown>>): Promise<PlannedMonitor> =>
  planned({ kind: hostKind, name: hostKind, settings }, true)

async function unconfigured(type: ServerType, options: AssembleOptions): Promise<readonly PlannedMonitor[]> {
  const plan = plans[type]
  const [own, open] = await Promise.all([
    Promise.all((plan.own?.(options.parts) ?? []).map((entry) => planned(entry, false))),
    found(plan.usualPorts, options),
  ])
  const configuration =
    own.length === 0
      ? await notice('Configuration', 'fail', `${type} is not configured here: add it under types: in svc.yaml`)
      : await notice(
          'Configuration',
          'warn',
          `${type}: no server configured; ${plan.ownSaid ?? 'parts of svc were checked'}`,
        )
  if (open.length === 0) return [...own, configuration]
  const ports = open.map(({ port, what }) => ({ port, what }))
  const listening = await planned({ kind: listeningKind, name: listeningKind, settings: { ports } }, true)
  return [...own, configuration, listening]
}

/** A look around must not cost the answer: what cannot be looked at is not reported as listening. */
async function found(
  ports: readonly { readonly port: number; readonly what: string }[],
  options: AssembleOptions,
): Promise<readonly ListeningPort[]> {
  if (ports.length === 0) return []
  const open = await options.listening(ports, options.signal).catch(() => [])
  options.signal.throwIfAborted()
  return open
}

/** Plans an entry. What is wrong with the host block is the user's (Fault `Local`), with any other our defect. */
async function planned(entry: MonitorEntry, host: boolean): Promise<PlannedMonitor> {
  const kind = await loadKind(entry.kind satisfies KindName)
  const { values, problems } = readSettings(kind.settings, entry.settings, { env: {}, folder: '.' })
  const [problem] = problems
  if (problem) {
    const sentence = `${entry.kind}: ${problem.path.join('.')} ${problem.message}`
    throw entry.kind === hostKind ? new Fault('Local', sentence) : new Error(sentence)
  }
  return {
    name: monitorName(entry.kind, entry.name),
    kind,
    settings: values,
    depth: depthOf(kind, 'Basic'),
    host,
    dependsOn: [],
    retries: 0,
    deployment: false,
  }
}
