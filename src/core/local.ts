import type { Access, Identity } from './auth/index.ts'
import type { PlannedMonitor, Run, Shared } from './engine/index.ts'
import { Fault } from './errors.ts'
import {
  type ExecutionMode,
  type HealthCheckResponse,
  operations,
  type RunDocument,
  type ServerType,
  type WhoMayCall,
} from './protocol/index.ts'
import { healthCheckResponse, type RunDocumentOptions, type RunView, runDocument, selectRun } from './reports/index.ts'
import type { Call, Caller, ServeOptions, Service } from './service.ts'
import type { Actor, Data } from './store/index.ts'

/** What the local Service computes with; made in `open.ts`. */
export type Parts = {
  /** The monitors of a type, for one call. */
  readonly plan: (type: ServerType, mode: ExecutionMode, call: Call) => Promise<readonly PlannedMonitor[]>
  /** Runs a plan for this call alone. */
  readonly run: (plan: readonly PlannedMonitor[], mode: ExecutionMode, call: Call) => Promise<Run>
  /** Runs shared with everyone who asks; absent for a command, whose every run is its own. */
  readonly shared?:
    | ((mode: ExecutionMode, type: ServerType, call: Call, stranger: boolean) => Promise<Shared>)
    | undefined
  readonly details: ServeOptions['details']
  /** Accounts, sessions and roles, opened when first needed; absent without a store. */
  readonly accounts?: (() => Promise<Accounts>) | undefined
}
export type Accounts = { readonly data: Data; readonly access: Access }

/** What single operations work with, and how to load it: `svc health` pays for none of it. */
const loaders = {
  roles: () => import('./roles/index.ts'),
  heartbeats: () => import('./heartbeats/index.ts'),
} as const

/** Loads what the operations load when they are first called. */
export const preloadOperations = async (): Promise<void> => {
  await Promise.all(Object.values(loaders).map((load) => load()))
}

/** The Service computed here. Every guard sits here and judges the caller it is given. */
export function localService(parts: Parts): Service {
  const documentsOf = rememberDocuments()
  return {
    async authenticate(request, call) {
      const { access } = await accountsFor('authenticate', parts)
      return await access.authenticate(request, call)
    },
    async getAccessToken(request, call) {
      const { access } = await accountsFor('getAccessToken', parts)
      return await access.getAccessToken(request, call)
    },
    async assignRoles(request, call) {
      const accounts = await accountsFor('assignRoles', parts)
      const actor = await admit('assignRoles', accounts, call)
      const { assign } = await loaders.roles()
      return await assign({ data: accounts.data, request, actor })
    },
    async unAssignRoles(request, call) {
      const accounts = await accountsFor('unAssignRoles', parts)
      const actor = await admit('unAssignRoles', accounts, call)
      const { unassign } = await loaders.roles()
      return await unassign({ data: accounts.data, request, actor })
    },
    async reportHeartbeat(request, call) {
      const { data, ...accounts } = await accountsFor('reportHeartbeat', parts)
      const actor = await admit('reportHeartbeat', { data, ...accounts }, call)
      const { report } = await loaders.heartbeats()
      return await report({ data, request, actor, now: Date.now() })
    },
    async healthCheck(request, call) {
      const { ExecutionMode: mode, ServerType: type } = request
      // Each step that waits costs the shared answer, so that what is known at once waits for nothing.
      const signedIn = isHere(call.caller) || !call.credential ? false : await isSignedIn(parts, call)
      const { run, ageMs } = await obtain(parts, mode, type, call, signedIn)
      const documents = documentsOf(run, type, request, viewFor(call.caller, parts.details, signedIn))
      const { correlationId, selection } = call
      const whole = { ...documents.run, correlationId }
      const selected = selection ? selectRun(whole, selection) : whole
      call.note?.({ ageSeconds: Math.floor(ageMs / 1_000), runId: run.id, run: selected })
      return selected === whole
        ? { ...documents.response, CorrelationId: correlationId }
        : healthCheckResponse(selected)
    },
  }
}

type Documents = { readonly run: RunDocument; readonly response: HealthCheckResponse }
type Flags = RunDocumentOptions['flags']

/** The documents of a run but for the correlation id: made once for all callers who share it and ask alike. */
function rememberDocuments(): (run: Run, type: ServerType, flags: Flags, view: RunView) => Documents {
  const documentsByRun = new WeakMap<Run, Map<string, Documents>>()
  return (run, type, flags, view) => {
    const ofRun = documentsByRun.get(run) ?? new Map<string, Documents>()
    documentsByRun.set(run, ofRun)
    const key = `${view} ${flags.IncludeServerStateInformation === true} ${flags.SuppressDeploymentErrors === true}`
    const before = ofRun.get(key)
    if (before) return before
    const document = runDocument(run, { type, correlationId: '', flags, view })
    const made = { run: document, response: healthCheckResponse(document) }
    ofRun.set(key, made)
    return made
  }
}

function obtain(parts: Parts, mode: ExecutionMode, type: ServerType, call: Call, signedIn: boolean): Promise<Shared> {
  return parts.shared
    ? parts.shared(mode, type, call, !isHere(call.caller) && !signedIn)
    : runAlone(parts, mode, type, call)
}

async function runAlone(parts: Parts, mode: ExecutionMode, type: ServerType, call: Call): Promise<Shared> {
  const run = await parts.run(await parts.plan(type, mode, call), mode, call)
  return { run, ageMs: 0 }
}

/**
 * P8, O1: who acts, for the audit. Throws Unauthorized for nobody and Forbidden without the role or the
 * permission that the operation's row asks for. In process it is the OS account, whatever else is presented.
 */
async function admit(operation: keyof typeof operations, { access }: Accounts, call: Call): Promise<Actor> {
  const { caller, correlationId } = call
  if (caller.kind === 'local') return { who: `local:${caller.account}`, correlationId }
  const identity = await access.identifyCaller(call)
  if (!identity) throw new Fault('Unauthorized')
  if (!may(identity, operations[operation].caller)) throw new Fault('Forbidden')
  const { user } = identity
  return { who: user.userName, userId: user.id, address: caller.address, correlationId }
}

/** Whoever holds Admin may do what a permission allows to others. */
function may({ roles, permissions }: Identity, required: WhoMayCall): boolean {
  if (required === 'anyone' || roles.includes('Admin')) return true
  return required !== 'Admin' && permissions.includes(required.permission)
}

/** Who calls, and what the call presents of itself. */
type Presented = Pick<Call, 'caller' | 'credential' | 'correlationId' | 'signal'>

/** Whether the caller is on this machine, as far as the transport can tell. */
const isHere = (caller: Caller): boolean => caller.kind === 'local' || caller.loopback

/** What a caller may see of a run. */
export const viewOf = async (parts: Parts, call: Presented): Promise<RunView> =>
  viewFor(call.caller, parts.details, await isSignedIn(parts, call))

/** S11: off loopback, a stranger is told the state and the fault classes, and nothing about hosts. */
function viewFor(caller: Caller, details: ServeOptions['details'], signedIn = false): RunView {
  return isHere(caller) || details === 'anyone' || signedIn ? 'full' : 'brief'
}

/**
 * Whether somebody is signed in, asked only where it matters: for what the answer shows, and for how
 * many runs the caller may start. A store that is in trouble opens nothing.
 */
async function isSignedIn({ accounts }: Parts, call: Presented): Promise<boolean> {
  if (!accounts || !call.credential || isHere(call.caller)) return false
  try {
    const { access } = await accounts()
    return (await access.identifyCaller(call)) !== undefined
  } catch {
    return false
  }
}

async function accountsFor(operation: keyof typeof operations, { accounts }: Parts): Promise<Accounts> {
  if (accounts) return await accounts()
  throw new Fault('NotImplemented', `The operation '${operations[operation].name}' is not offered here`, {
    hints: ['This service answers health checks only: it runs without a store.'],
  })
}
