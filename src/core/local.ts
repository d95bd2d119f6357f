import { Fault } from './errors.ts'
import { type AnswerOptions, answer, type PlannedMonitor, type Run, type Shared } from './health/index.ts'
import { type ExecutionMode, operations, type ServerType, select } from './protocol/index.ts'
import type { Call, Caller, ServeOptions, Service } from './service.ts'

/** What the local Service computes with; made in `open.ts`. */
export type Parts = {
  /** The monitors of a type, for one call. */
  readonly plan: (type: ServerType, mode: ExecutionMode, call: Call) => Promise<readonly PlannedMonitor[]>
  /** Runs a plan for this call alone. */
  readonly run: (plan: readonly PlannedMonitor[], mode: ExecutionMode, call: Call) => Promise<Run>
  /** Runs shared with everyone who asks; absent for a command, whose every run is its own. */
  readonly shared?: ((mode: ExecutionMode, type: ServerType, call: Call) => Promise<Shared>) | undefined
  readonly details: ServeOptions['details']
}

/** The Service computed here. Every guard sits here and judges the caller it is given. */
export function localService(parts: Parts): Service {
  return {
    authenticate: () => notInThisVersion('authenticate'),
    getAccessToken: () => notInThisVersion('getAccessToken'),
    assignRoles: () => notInThisVersion('assignRoles'),
    unAssignRoles: () => notInThisVersion('unAssignRoles'),
    async healthCheck(request, call) {
      const { ExecutionMode: mode, ServerType: type } = request
      const { run, ageMs } = await obtain(parts, mode, type, call)
      call.note?.({ ageSeconds: Math.floor(ageMs / 1_000), runId: run.id })
      const shaped = answer(run, {
        type,
        correlationId: call.correlationId,
        flags: request,
        view: viewFor(call.caller, parts.details),
      })
      return call.selection ? select(shaped, call.selection) : shaped
    },
  }
}

async function obtain(parts: Parts, mode: ExecutionMode, type: ServerType, call: Call): Promise<Shared> {
  // A run that a peer asked for asks no further peer, so it must not serve anyone else, nor be served.
  if (parts.shared && !call.calledByPeer) return await parts.shared(mode, type, call)
  const run = await parts.run(await parts.plan(type, mode, call), mode, call)
  return { run, ageMs: 0 }
}

/** S11: off loopback, a stranger is told the state and the fault classes, and nothing about hosts. */
export function viewFor(caller: Caller, details: ServeOptions['details']): AnswerOptions['view'] {
  if (caller.kind === 'local' || caller.loopback || details === 'anyone') return 'full'
  return 'brief'
}

const notInThisVersion = (operation: keyof typeof operations): Promise<never> =>
  Promise.reject(
    new Fault('NotImplemented', `The operation '${operations[operation].name}' does not exist in this version`, {
      hints: ['This version answers health checks; sign-in and roles are not in it.'],
    }),
  )
