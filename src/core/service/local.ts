import type { Access, Identity } from '../accounts/auth/index.ts'
import type { NewNames } from '../accounts/heartbeats/index.ts'
import { Fault, isStoreFailure } from '../base/errors.ts'
import type { PlannedMonitor, Run, Shared } from '../checks/engine/index.ts'
import {
  type DocumentsOf,
  healthCheckResponse,
  type SilencedResults,
  selectRun,
  withSilences,
} from '../checks/reports/index.ts'
import {
  type AdminOperation,
  administration,
  drillPermission,
  type ExecutionMode,
  isOfKind,
  maySendHeartbeat,
  maySilence,
  mustChangeCode,
  type OperationSpec,
  operations,
  type Request,
  type Response,
  readsDetails,
  ServerType,
  type WhoMayCall,
} from '../protocol/index.ts'
import {
  type AdminCaller,
  type Administration,
  type Call,
  type Caller,
  type HealthViews,
  isExempt,
  readsHere,
  type ServeOptions,
  type Service,
} from '../protocol/service/service.ts'
import type { Actor, Data } from '../store/index.ts'

/** The dependencies of the local Service, made in `open.ts`. */
export type Parts = {
  /** The monitors of a type for one call. */
  readonly plan: (type: ServerType, mode: ExecutionMode, call: Call) => Promise<readonly PlannedMonitor[]>
  /** Runs a plan for this call only. */
  readonly run: (plan: readonly PlannedMonitor[], mode: ExecutionMode, call: Call) => Promise<Run>
  /** Runs that all callers share. Absent for a command, which always makes its own run. */
  readonly shared?:
    | ((mode: ExecutionMode, type: ServerType, call: Call, isStranger: () => Promise<boolean>) => Promise<Shared>)
    | undefined
  readonly documentsOf: DocumentsOf
  readonly details: ServeOptions['details']
  /** The types that a check of everything includes. */
  readonly serverTypes: () => { readonly types: readonly ServerType[]; readonly configured: boolean }
  /** The results of monitors over time. `reads`: whether the caller may read the details of a type. */
  readonly history: (request: Request<'history'>, reads: (type: ServerType) => boolean) => Promise<Response<'history'>>
  /** The dependents of monitors. `reads`: whether the caller may read the details of a type. */
  readonly impact: (request: Request<'impact'>, reads: (type: ServerType) => boolean) => Promise<Response<'impact'>>
  /** Drills, loaded on first use. */
  readonly drills: () => Promise<Drills>
  /** Which results of a run are silenced, for a caller for whom they do not count if `honors`. Undefined: none. */
  readonly silencesIn?:
    | ((
        run: Run,
        type: ServerType,
        honors: boolean,
      ) => SilencedResults | undefined | Promise<SilencedResults | undefined>)
    | undefined
  /** The operations about silences. Absent without a store. */
  readonly silences?: SilenceOperations | undefined
  /** The nodes that share the store. */
  readonly nodes: NodesOperations
  /** Accounts, sessions and roles, opened on first use. Absent without a store. */
  readonly accounts?: (() => Promise<Accounts>) | undefined
  /** The operations for Admins. Absent without a store. */
  readonly administration?: Administration | undefined
}
/** The functions of drills that the operations use. `by`: who asks. */
export type Drills = {
  readonly start: (request: Request<'startDrill'>, by: string) => Promise<Response<'startDrill'>>
  readonly get: (request: Request<'getDrill'>) => Promise<Response<'getDrill'>>
}
export type Accounts = { readonly data: Data; readonly access: Access }

/** The view of a caller who only reads silences. Whoever may silence sees everything that belongs to them. */
export type SilenceReader = {
  /** Whether it reads the details of a type. */
  readonly reads: (type: ServerType) => boolean
  /** Whether it reads those of all types, and so the names and reasons of people. */
  readonly readsAll: boolean
}

/** The operations about silences. They throw Faults for requests that cannot be carried out, and those of the store. */
export type SilenceOperations = {
  readonly silenceMonitors: (request: Request<'silenceMonitors'>, actor: Actor) => Promise<Response<'silenceMonitors'>>
  readonly getSilences: (reader: SilenceReader) => Promise<Response<'getSilences'>>
  readonly endSilence: (request: Request<'endSilence'>, actor: Actor) => Promise<Response<'endSilence'>>
  readonly acknowledge: (request: Request<'acknowledge'>, actor: Actor) => Promise<Response<'acknowledge'>>
}

/** The operations about nodes. They throw Faults for a store without nodes, and those of the store. */
export type NodesOperations = {
  readonly getNodes: () => Promise<Response<'getNodes'>>
  readonly forgetNode: (request: Request<'forgetNode'>, actor: Actor) => Promise<Response<'forgetNode'>>
}

/** Loaders for what single operations need, so that `svc health` loads none of it. */
const loaders = {
  roles: () => import('../accounts/roles/index.ts'),
  heartbeats: () => import('../accounts/heartbeats/index.ts'),
} as const

/** Loads everything that the operations would load on first use. */
export const preloadOperations = async (): Promise<void> => {
  await Promise.all(Object.values(loaders).map((load) => load()))
}

/** The Service computed in this process. All authorization happens here and judges the caller that it is given. */
export function localService(parts: Parts): Service {
  let newNames: NewNames | undefined
  return {
    ...administrationOf(parts),
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
      const { actor, identity } = await admitted('assignRoles', accounts, call)
      const { assign } = await loaders.roles()
      return await assign({ data: accounts.data, request, actor, ending: identity?.ending })
    },
    async unAssignRoles(request, call) {
      const accounts = await accountsFor('unAssignRoles', parts)
      const { actor } = await admitted('unAssignRoles', accounts, call)
      const { unassign } = await loaders.roles()
      return await unassign({ data: accounts.data, request, actor })
    },
    async giveBackRoles(request, call) {
      const accounts = await accountsFor('giveBackRoles', parts)
      const { actor, identity } = await admitted('giveBackRoles', accounts, call)
      const { giveBack } = await loaders.roles()
      return await giveBack({ data: accounts.data, request, actor, user: identity?.user })
    },
    async changePassword(request, call) {
      const accounts = await accountsFor('changePassword', parts)
      return await accounts.access.changePassword(request, call, await admitted('changePassword', accounts, call))
    },
    async getSessions(request, call) {
      const accounts = await accountsFor('getSessions', parts)
      return await accounts.access.getSessions(request, await admitted('getSessions', accounts, call))
    },
    async endSession(request, call) {
      const accounts = await accountsFor('endSession', parts)
      return await accounts.access.endSession(request, await admitted('endSession', accounts, call))
    },
    async reportHeartbeat(request, call) {
      const accounts = await accountsFor('reportHeartbeat', parts)
      const { actor, identity } = await admitted('reportHeartbeat', accounts, call)
      if (identity && !maySendHeartbeat(identity, request.Name ?? '')) {
        throw new Fault('Forbidden', 'The permission of this caller is for heartbeats of other names')
      }
      const { report, NewNames } = await loaders.heartbeats()
      newNames ??= new NewNames()
      // Whoever has this account can write the store in any case.
      const admit = identity && newNames.admission(actor.who, performance.now())
      return await report({ data: accounts.data, request, actor, now: accounts.data.clock.now(), admit })
    },
    async getSilences(_request, call) {
      const views = await readableViews(parts, call)
      const reads = (type: ServerType): boolean => views(type) === 'full'
      return await silencesOf('getSilences', parts).getSilences({ reads, readsAll: views() === 'full' })
    },
    async silenceMonitors(request, call) {
      const { silences, actor } = await silencing('silenceMonitors', parts, call)
      return await silences.silenceMonitors(request, actor)
    },
    async endSilence(request, call) {
      const { silences, actor } = await silencing('endSilence', parts, call)
      return await silences.endSilence(request, actor)
    },
    async acknowledge(request, call) {
      const { silences, actor } = await silencing('acknowledge', parts, call)
      return await silences.acknowledge(request, actor)
    },
    async getNodes(_request, call) {
      const views = await readableViews(parts, call)
      if (views() !== 'full') throw new Fault('Forbidden')
      return await parts.nodes.getNodes()
    },
    async forgetNode(request, call) {
      return await parts.nodes.forgetNode(request, (await administrator('forgetNode', parts, call)).actor)
    },
    async serverTypes() {
      const { types, configured } = parts.serverTypes()
      return { Types: types, Configured: configured }
    },
    async history(request, call) {
      return await parts.history(request, await readable(parts, call, request.ServerType))
    },
    async impact(request, call) {
      return await parts.impact(request, await readable(parts, call))
    },
    async startDrill(request, call) {
      const by = await mayDrill('startDrill', parts, call)
      return await (await parts.drills()).start(request, by)
    },
    async getDrill(request, call) {
      await mayDrill('getDrill', parts, call)
      return await (await parts.drills()).get(request)
    },
    async healthCheck(request, call) {
      const { ExecutionMode: mode, ServerType: type } = request
      // Every await delays shared answers, so the known cases skip it.
      const opens = isOpenTo(call.caller, parts.details)
      const open = typeof opens === 'boolean' ? opens : await opens
      const views = mustIdentify(call, open) ? await viewsOf(parts, call) : undefined
      const { run, ageMs, stored } = await obtain(parts, mode, type, call, views)
      const documents = parts.documentsOf(run, type, request, open ? everything : (views ?? nothing))
      const { correlationId, selection } = call
      const plain = { ...documents.run, correlationId }
      const honors = request.Silence === 'Honor'
      const silenceOf = parts.silencesIn?.(run, type, honors)
      const silences = silenceOf instanceof Promise ? await silenceOf : silenceOf
      const names = open || views?.() === 'full'
      const whole = silences ? withSilences(plain, silences, { honors, names }) : plain
      const selected = selection ? selectRun(whole, selection) : whole
      call.note?.({ ageSeconds: Math.floor(ageMs / 1_000), runId: run.id, run: selected, stored })
      return selected === plain
        ? { ...documents.response, CorrelationId: correlationId }
        : healthCheckResponse(selected)
    },
  }
}

/** `views`: what the caller may see; undefined if nothing has needed to know it. */
function obtain(
  parts: Parts,
  mode: ExecutionMode,
  type: ServerType,
  call: Call,
  views: HealthViews | undefined,
): Promise<Shared> {
  const isStranger = async (): Promise<boolean> =>
    (views ?? (await viewsOf(parts, call)))(type) !== 'full' && !(await isExempt(call.caller))
  return parts.shared ? parts.shared(mode, type, call, isStranger) : runAlone(parts, mode, type, call)
}

async function runAlone(parts: Parts, mode: ExecutionMode, type: ServerType, call: Call): Promise<Shared> {
  const run = await parts.run(await parts.plan(type, mode, call), mode, call)
  return { run, ageMs: 0 }
}

/**
 * Authorizes the caller and returns the actor for the audit (P8, O1), with the identity of one who has signed in. Throws Unauthorized without an identity, and
 * Forbidden without the role or permission that the operation requires. In process, the actor is always the OS
 * account.
 */
async function admitted(
  operation: keyof typeof operations,
  { access }: Accounts,
  call: Call,
): Promise<{ readonly actor: Actor; readonly identity: Identity | undefined }> {
  const { caller, correlationId } = call
  if (caller.kind === 'local') return { actor: localActor(caller, correlationId), identity: undefined }
  const identity = await access.identifyCaller(call, operation === 'changePassword')
  if (!identity) throw new Fault('Unauthorized')
  const required = operations[operation].caller
  if (required === 'user' && identity.via === 'key') throw new Fault('Forbidden', 'Not with a key: sign in as the user')
  if (!may(identity, required)) throw new Fault('Forbidden')
  const { user } = identity
  return { actor: { who: user.userName, userId: user.id, address: caller.address, correlationId }, identity }
}

const localActor = ({ account }: Extract<Caller, { kind: 'local' }>, correlationId: string): Actor => ({
  who: `local:${account}`,
  correlationId,
})

/** Authorizes a caller of an operation for Admins. In process, there may be no store yet. */
async function administrator(operation: keyof typeof operations, parts: Parts, call: Call) {
  const { caller, correlationId } = call
  if (caller.kind === 'local') return { actor: localActor(caller, correlationId), identity: undefined }
  return await admitted(operation, await accountsFor(operation, parts), call)
}

/** One method for each row of administration. */
function administrationOf(parts: Parts): Pick<Service, AdminOperation> {
  const method = (operation: AdminOperation) => async (request: { readonly Reason?: string }, call: Call) => {
    if (!parts.administration) throw notOffered(operation)
    const { actor, identity } = await administrator(operation, parts, call)
    const { givesAccess }: OperationSpec = operations[operation]
    if (givesAccess && identity?.ending.some(({ kind, name }) => kind === 'role' && name === 'Admin')) {
      throw new Fault('Forbidden', 'Your own role Admin ends, and nothing that you give may last longer')
    }
    // A key has no session. What it reads counts as one for each day.
    const session = identity && (identity.familyId ?? `${identity.user.id} ${new Date().toISOString().slice(0, 10)}`)
    const by: AdminCaller = { ...actor, reason: request.Reason, session, signal: call.signal }
    return await (parts.administration[operation] as (request: object, by: AdminCaller) => Promise<unknown>)(
      request,
      by,
    )
  }
  const names = Object.keys(administration) as AdminOperation[]
  return Object.fromEntries(names.map((name) => [name, method(name)])) as unknown as Pick<Service, AdminOperation>
}

/** Who drills, for the record. In process it is the account that has the store. */
async function mayDrill(operation: 'startDrill' | 'getDrill', parts: Parts, call: Call): Promise<string> {
  const { caller } = call
  if (caller.kind === 'local') return `local:${caller.account}`
  const { actor, identity } = await admitted(operation, await accountsFor(operation, parts), call)
  if (identity && !identity.roles.includes('Admin') && !identity.permissions.includes(drillPermission)) {
    throw new Fault('Forbidden')
  }
  return actor.who
}

/** Authorizes a caller who silences something (Q1). */
async function silencing(operation: 'silenceMonitors' | 'endSilence' | 'acknowledge', parts: Parts, call: Call) {
  const silences = silencesOf(operation, parts)
  const { actor, identity } = await admitted(operation, await accountsFor(operation, parts), call)
  if (identity && !maySilence(identity)) throw new Fault('Forbidden')
  return { silences, actor }
}

/** Admin includes all permissions. */
function may({ roles, permissions }: Identity, required: WhoMayCall): boolean {
  if (required === 'anyone' || required === 'user' || roles.includes('Admin')) return true
  // A permission for less than all suffices here: the operation compares what it is for.
  return required !== 'Admin' && permissions.some((permission) => isOfKind(permission, required.permission))
}

/** The caller and its credential. */
type Presented = Pick<Call, 'caller' | 'credential' | 'correlationId' | 'signal'>

/** Whether everybody who can make such a call sees the whole run (S11). */
const isOpenTo = (caller: Caller, details: ServeOptions['details']): boolean | Promise<boolean> =>
  details === 'anyone' || readsHere(caller)

/**
 * The views of a caller on the runs of each type, and on everything that belongs to no single type. Beyond loopback,
 * callers who may not read the details see statuses and fault classes only (S11).
 */
export async function viewOf(parts: Parts, call: Presented): Promise<HealthViews> {
  const open = await isOpenTo(call.caller, parts.details)
  const views = mustIdentify(call, open) ? await viewsOf(parts, call) : nothing
  return open ? everything : views
}

/**
 * Which types the caller may read the details of. Throws Unauthorized or Forbidden for one who may read nothing of this
 * type, or of any.
 */
async function readable(parts: Parts, call: Call, type?: ServerType): Promise<(type: ServerType) => boolean> {
  const views = await readableViews(parts, call, type)
  return (one) => views(one) === 'full'
}

async function readableViews(parts: Parts, call: Call, type?: ServerType): Promise<HealthViews> {
  const views = await viewOf(parts, call)
  const reads = (one: ServerType): boolean => views(one) === 'full'
  if (type === undefined ? ServerType.values.some(reads) : reads(type)) return views
  // With a failing store, nobody is anybody: the answer then says so.
  const identity = call.credential && parts.accounts && (await (await parts.accounts()).access.identifyCaller(call))
  throw new Fault(identity ? 'Forbidden' : 'Unauthorized')
}

const everything: HealthViews = () => 'full'
const nothing: HealthViews = () => 'brief'

/** The views that the credential of a caller allows. */
async function viewsOf(parts: Parts, call: Presented): Promise<HealthViews> {
  const identity = await identityOf(parts, call)
  return identity === undefined ? nothing : (type) => (readsDetails(identity, type) ? 'full' : 'brief')
}

/** Whether a credential is the secret of a user, which a stranger may guess: a password or a digest of one. */
const isSecretOfUser = ({ credential }: Presented): boolean =>
  credential?.kind === 'basic' || credential?.kind === 'digest'

/** Whether the credential decides about the answer: about its details, or whether there is one (H7). */
const mustIdentify = (call: Presented, open: boolean): boolean =>
  isSecretOfUser(call) || (!open && call.credential !== undefined)

/**
 * Who the caller is. Checked only where it matters: for the details of the answer and the number of runs that the
 * caller may start. With a failing store, the caller is nobody, and so is the holder of an unknown token, key or
 * session. Throws Unauthorized for a wrong password or digest, and TooManyRequests for too many (H7).
 */
async function identityOf({ accounts }: Parts, call: Presented): Promise<Identity | undefined> {
  if (!accounts || !call.credential) return undefined
  const identity = await identified(accounts, call)
  if (!identity && isSecretOfUser(call)) throw new Fault('Unauthorized')
  return identity === 'undecided' ? undefined : identity
}

/** `undecided` where the store, the queue of sign-ins or the end of the call prevents a decision. Throws defects. */
async function identified(
  accounts: NonNullable<Parts['accounts']>,
  call: Presented,
): Promise<Identity | 'undecided' | undefined> {
  try {
    const { access } = await accounts()
    return await access.identifyCaller(call)
  } catch (error) {
    if (error instanceof Fault && error.errorCode === mustChangeCode) throw error
    const refused = error instanceof Fault && (error.fault === 'Unauthorized' || error.fault === 'TooManyRequests')
    if (refused && isSecretOfUser(call)) throw error
    if (!call.signal.aborted && !isStoreFailure(error)) throw error
    return 'undecided'
  }
}

async function accountsFor(operation: keyof typeof operations, { accounts }: Parts): Promise<Accounts> {
  if (accounts) return await accounts()
  throw notOffered(operation)
}

function silencesOf(operation: keyof typeof operations, { silences }: Parts): SilenceOperations {
  if (silences) return silences
  throw notOffered(operation)
}

const notOffered = (operation: keyof typeof operations): Fault =>
  new Fault('NotImplemented', `The operation '${operations[operation].name}' is not offered here`, {
    hints: ['This service answers health checks only: it runs without a store.'],
  })
