import { atLeast, atMost, fail, includes, monitorKind, ok, type Result } from '../../engine/index.ts'
import { showDuration } from '../../format.ts'
import { said } from '../../net/text.ts'
import { askManager } from './ask.ts'
import type { ServiceState } from './state.ts'

type Seen = { readonly see: 'state' | 'more'; readonly state: ServiceState; readonly advanced: boolean }

/** A service of this machine, as systemd, Windows or launchd tells of it. Nothing is started or stopped. */
export default monitorKind({
  name: 'service',
  title: 'A service of this machine runs (systemd, Windows, launchd)',
  settings: {
    service: {
      type: 'text',
      required: true,
      // What begins with a dash or two backslashes would be an option, or another machine.
      pattern: /^[A-Za-z0-9_@][A-Za-z0-9@:_.\\$ -]{0,254}$/,
      doc: 'Its name: nginx or nginx.service (systemd), the short name (Windows), the label (launchd)',
    },
    restarts: {
      type: 'threshold',
      unit: 'count',
      default: { warn: 3 },
      doc: 'How often its manager may have started it again (systemd, launchd)',
    },
    restarted: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 5 * 60_000 },
      doc: 'How long it must have run (systemd)',
    },
  },
  checks: [
    { name: 'state', depth: 'Basic', doc: 'It runs; while it is being replaced that is deployment-related' },
    { name: 'restarts', depth: 'Standard', doc: 'It was not started again too often; where its manager counts' },
    { name: 'restarted', depth: 'Advanced', doc: 'Warns when it was started lately; where its manager says' },
  ],
  async *observe({ service }, context): AsyncGenerator<Seen> {
    context.step('state', service)
    const state = await askManager(service, context.signal)
    yield { see: 'state', state, advanced: false }
    if (state.is === 'absent' || !includes(context.mode, 'Standard')) return
    yield { see: 'more', state, advanced: includes(context.mode, 'Advanced') }
  },
  evaluate: ({ see, state, advanced }, { service, restarts, restarted }): Result | readonly Result[] => {
    if (see === 'state') return evaluateState(state, service)
    const { is, restarts: times, sinceMs } = state
    return [
      ...(times === undefined
        ? []
        : [atMost({ check: 'restarts', what: 'started again', value: times, unit: 'count', threshold: restarts })]),
      ...(advanced && is === 'running' && sinceMs !== undefined
        ? [atLeast({ check: 'restarted', what: 'up', value: sinceMs, unit: 'duration', threshold: restarted })]
        : []),
    ]
  },
})

function evaluateState({ is, words, sinceMs, pid, why }: ServiceState, service: string): Result {
  const since = sinceMs === undefined ? '' : ` for ${showDuration(sinceMs)}`
  const shown = said(words, 80)
  if (is === 'running') return ok('state', `${shown}${since}${pid === undefined ? '' : `, process ${pid}`}`)
  if (is === 'absent') return fail('state', 'data', `there is no service ${service} here (${shown})`)
  const because = why === undefined ? '' : `: ${said(why, 80)}`
  const told = `not running: ${shown}${since}${because}`
  return is === 'changing' ? fail('state', 'data', told, { deployment: true }) : fail('state', 'data', told)
}
