import { type CheckContext, type Heartbeat, machineKind } from '../../engine/index.ts'
import { Fault } from '../../errors.ts'
import { ProbeError } from '../../probe-error.ts'
import { type Agents, agentsOf, type ReportSettings, reportSettings } from './agents.ts'
import { backlog, clock, disk, flapping, newest, reporting, silent, status, version } from './checks.ts'
import { dueAt, scheduleProblem } from './schedule.ts'

/** What cannot be read says nothing of the agents: that is a failure of its own. */
async function read({ heartbeats }: CheckContext): Promise<readonly Heartbeat[]> {
  if (!heartbeats) throw new ProbeError('internal', 'there is no store here to keep heartbeats in')
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

/** Agents report (`svc heartbeat`), and their silence is what is found. Nothing is asked of them. */
export default machineKind({
  name: 'heartbeat',
  title: 'Agents report that they are alive and well',
  // Schedules are in local time, and Node settles which that is when it is first needed. Where /etc/localtime is a
  // copy it looks for the same file among all time zones; failing that for want of descriptors, it stays UTC.
  preload: async () => new Date().getTimezoneOffset(),
  settings: reportSettings,
  validate: scheduleProblem,
  open,
  checks: [newest, reporting, status, version, disk, clock, backlog, silent, flapping],
})
