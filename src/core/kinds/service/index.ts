import { atLeast, atMost, type CheckContext, checksOn, fail, machineKind, ok } from '../../engine/index.ts'
import { showDuration } from '../../format.ts'
import { said } from '../../net/text.ts'
import type { SettingsSpec, Values } from '../../settings/index.ts'
import { type ServiceState, serviceState } from './managers.ts'

const which = {
  service: {
    type: 'text',
    required: true,
    // What begins with a dash or two backslashes would be an option, or another machine.
    pattern: /^[A-Za-z0-9_@][A-Za-z0-9@:_.\\$ -]{0,254}$/,
    doc: 'Its name: nginx or nginx.service (systemd), the short name (Windows), the label (launchd)',
  },
} as const satisfies SettingsSpec

const check = checksOn<ServiceState>()

export const state = check({
  depth: 'Basic',
  results: { state: 'It runs; while it is being replaced that is deployment-related' },
  settings: which,
  observe: (service) => Promise.resolve(service),
  evaluate: ({ is, words, sinceMs, pid, why }, { service }) => {
    const since = sinceMs === undefined ? '' : ` for ${showDuration(sinceMs)}`
    const summary = said(words, 80)
    if (is === 'running') return ok('state', `${summary}${since}${pid === undefined ? '' : `, process ${pid}`}`)
    if (is === 'absent') return fail('state', 'data', `there is no service ${service} here (${summary})`)
    const because = why === undefined ? '' : `: ${said(why, 80)}`
    const message = `not running: ${summary}${since}${because}`
    return is === 'changing' ? fail('state', 'data', message, { deployment: true }) : fail('state', 'data', message)
  },
})

export const restarts = check({
  depth: 'Standard',
  results: { restarts: 'It was not started again too often; where its manager counts' },
  settings: {
    restarts: {
      type: 'threshold',
      unit: 'count',
      default: { warn: 3 },
      doc: 'How often its manager may have started it again (systemd, launchd)',
    },
  },
  observe: (service) => Promise.resolve(service),
  evaluate: ({ is, restarts: value }, { restarts: threshold }) =>
    is === 'absent' || value === undefined
      ? []
      : atMost({ check: 'restarts', what: 'started again', value, unit: 'count', threshold }),
})

export const restarted = check({
  depth: 'Advanced',
  results: { restarted: 'Warns when it was started lately; where its manager says' },
  settings: {
    restarted: {
      type: 'threshold',
      unit: 'duration',
      default: { warn: 5 * 60_000 },
      doc: 'How long it must have run (systemd)',
    },
  },
  observe: (service) => Promise.resolve(service),
  evaluate: ({ is, sinceMs: value }, { restarted: threshold }) =>
    is !== 'running' || value === undefined
      ? []
      : atLeast({ check: 'restarted', what: 'up', value, unit: 'duration', threshold }),
})

/** A service of this machine, as systemd, Windows or launchd describe it. Nothing is started or stopped. */
export default machineKind({
  name: 'service',
  title: 'A service of this machine runs (systemd, Windows, launchd)',
  settings: which,
  open({ service }: Values<typeof which>, { step, signal }: CheckContext): Promise<ServiceState> {
    step('state', service)
    return serviceState(service, signal)
  },
  checks: [state, restarts, restarted],
})
