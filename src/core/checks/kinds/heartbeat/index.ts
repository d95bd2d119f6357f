import { Fault } from '../../../base/errors.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import type { Heartbeat } from '../../../protocol/index.ts'
import { type CheckContext, machineKind } from '../../engine/index.ts'
import { type Agents, agentsOf, type ReportSettings, reportSettings } from './agents.ts'
import {
  backlog,
  clock,
  disk,
  flapping,
  newest,
  overlap,
  reporting,
  runtime,
  silent,
  status,
  version,
} from './checks.ts'
import { dueAt, scheduleProblem } from './schedule.ts'

declare module '../../engine/index.ts' {
  interface Services {
    /** The last heartbeat of every agent. Rejects with a Fault when the store cannot be read. Absent without a store. */
    readonly heartbeats: () => Promise<readonly Heartbeat[]>
  }
}

/** A store that cannot be read says nothing about the agents, so this is a failure of its own. */
async function read({ services: { heartbeats } }: CheckContext): Promise<readonly Heartbeat[]> {
  if (!heartbeats) throw new ProbeError('internal', 'there is no store to keep heartbeats in')
  try {
    return await heartbeats()
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    throw new ProbeError('internal', `heartbeats cannot be read: ${error.message}`, error.details.hints)
  }
}

async function open(settings: ReportSettings, context: CheckContext): Promise<Agents> {
  context.step('newest')
  const heartbeats = await read(context)
  const now = context.date().getTime()
  return agentsOf(heartbeats, settings, dueAt(settings, now), now)
}

/** Agents report with `svc heartbeat`, and the checks detect their silence. Sends no requests to agents. */
export default machineKind({
  name: 'heartbeat',
  title: 'Agents report that they are alive and healthy',
  // Schedules use local time, and Node determines the local time zone on first use. If /etc/localtime is a copy, Node
  // searches all time zones for the same file; if that fails for lack of file descriptors, it keeps UTC.
  preload: async () => new Date().getTimezoneOffset(),
  cost: { machine: 'It reads the store of svc.' },
  settings: reportSettings,
  validate: scheduleProblem,
  open,
  checks: [newest, reporting, status, runtime, overlap, version, disk, clock, backlog, silent, flapping],
})
