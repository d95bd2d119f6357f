import type { ServiceState } from './state.ts'

const properties = [
  'LoadState',
  'ActiveState',
  'SubState',
  'Result',
  'NRestarts',
  'MainPID',
  'StateChangeTimestampMonotonic',
  'ActiveEnterTimestampMonotonic',
] as const

/** Where distributions put it. The PATH is not searched: whoever sets it would choose what runs. */
export const systemctlPlaces = ['/usr/bin/systemctl', '/bin/systemctl', '/run/current-system/sw/bin/systemctl']

export const systemctlArgs = (service: string): readonly string[] => [
  'show',
  '--no-pager',
  `--property=${properties.join(',')}`,
  '--',
  service,
]

/**
 * Reads what `systemctl show` prints. `nowUs` is the same monotonic clock, in microseconds. Undefined
 * when it is something else.
 */
export function parseSystemd(text: string, nowUs: number): ServiceState | undefined {
  const values = new Map<string, string>()
  for (const line of text.split(/\r?\n/).slice(0, 100)) {
    const at = line.indexOf('=')
    if (at > 0) values.set(line.slice(0, at), line.slice(at + 1))
  }
  const [load, active, sub] = [values.get('LoadState'), values.get('ActiveState'), values.get('SubState')]
  if (load === undefined || active === undefined) return undefined
  if (load === 'not-found') return { is: 'absent', words: 'not found' }
  const is = stateOf(active, sub ?? '')
  const whole = (name: string): number | undefined => {
    const value = values.get(name) ?? ''
    return /^\d{1,16}$/.test(value) ? Number(value) : undefined
  }
  const since = whole(is === 'running' ? 'ActiveEnterTimestampMonotonic' : 'StateChangeTimestampMonotonic')
  const pid = whole('MainPID')
  const result = values.get('Result')
  return {
    is,
    words: `${active} (${sub ?? 'unknown'})${load === 'loaded' ? '' : `, ${load}`}`,
    // 0: it has never been so.
    sinceMs: since ? Math.max(0, (nowUs - since) / 1_000) : undefined,
    restarts: whole('NRestarts'),
    pid: pid || undefined,
    why: result !== undefined && result !== '' && result !== 'success' ? result : undefined,
  }
}

function stateOf(active: string, sub: string): ServiceState['is'] {
  // It ended, and is waiting to be started again.
  if (sub === 'auto-restart' || active === 'failed') return 'failed'
  if (active === 'active' || active === 'reloading') return 'running'
  return active === 'activating' || active === 'deactivating' || active === 'maintenance' ? 'changing' : 'stopped'
}
