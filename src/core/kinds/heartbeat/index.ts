import { type CheckContext, type Heartbeat, includes, monitorKind } from '../../engine/index.ts'
import { Fault } from '../../errors.ts'
import { ProbeError } from '../../probe-error.ts'
import { agentsOf } from './agents.ts'
import { evaluateHeartbeats, type HeartbeatSeen } from './judge.ts'
import { dueAt, scheduleProblem } from './schedule.ts'
import { heartbeatSettings } from './settings.ts'

/** Agents report (`svc heartbeat`), and their silence is what is found. Nothing is asked of them. */
export default monitorKind({
  name: 'heartbeat',
  title: 'Agents report that they are alive and well',
  // Schedules are in local time, and Node settles which that is when it is first needed. Where /etc/localtime is a
  // copy it looks for the same file among all time zones; failing that for want of descriptors, it stays UTC.
  preload: async () => new Date().getTimezoneOffset(),
  settings: heartbeatSettings,
  checks: [
    { name: 'newest', depth: 'Basic', doc: 'The newest heartbeat of all is young, or has come as scheduled' },
    { name: 'reporting', depth: 'Standard', doc: 'As many agents report as should' },
    { name: 'status', depth: 'Standard', doc: 'What the agents say of themselves' },
    { name: 'version', depth: 'Standard', doc: 'All run the same version, or the expected one' },
    { name: 'disk', depth: 'Standard', doc: 'Free disk of the fullest; of agents that report it' },
    { name: 'clock', depth: 'Standard', doc: 'The clock that is off the most; of agents that report it' },
    { name: 'backlog', depth: 'Advanced', doc: 'Waiting work of the busiest, where a threshold is set' },
    { name: 'silent', depth: 'Advanced', doc: 'How many agents that once reported are silent' },
    {
      name: 'flapping',
      depth: 'Advanced',
      doc: 'Changes between well and unwell or silent; of agents with 5 heartbeats',
    },
  ],
  validate: scheduleProblem,
  async *observe(settings, context): AsyncGenerator<HeartbeatSeen> {
    context.step('newest')
    const heartbeats = await read(context)
    const now = context.date().getTime()
    const seen = { ...agentsOf(heartbeats, settings, now), due: dueAt(settings, now) }
    yield { see: 'newest', ...seen }
    if (includes(context.mode, 'Standard')) yield { see: 'standard', ...seen }
    if (includes(context.mode, 'Advanced')) yield { see: 'advanced', ...seen }
  },
  evaluate: evaluateHeartbeats,
})

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
