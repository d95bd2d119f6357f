import { showDuration } from '../../base/format.ts'
import { sanitize } from '../../base/net/text.ts'
import { ProbeError } from '../../base/probe-error.ts'
import type { SettingsSpec, Values } from '../../base/settings/index.ts'
import { system32File } from '../../base/system/end-process.ts'
import { plainEnvironment, runProgram } from '../../base/system/run-program.ts'
import { limitsOn } from '../assert/limit-check.ts'
import { type CheckContext, checksOn, fail, machineKind, ok } from '../engine/index.ts'

/** A service as its service manager describes it. */
export type ServiceState = {
  /** `running`: as expected. `changing`: being started, stopped or replaced. */
  readonly is: 'running' | 'changing' | 'stopped' | 'failed' | 'absent'
  /** The manager's own description: `active (running)`. */
  readonly words: string
  /** Milliseconds since the service entered this state. */
  readonly sinceMs?: number | undefined
  /** How often the manager has restarted the service after it exited. */
  readonly restarts?: number | undefined
  readonly pid?: number | undefined
  /** Why it is not running, if the manager says so: `exit-code`, `exit code 1`. */
  readonly why?: string | undefined
}

type Manager = {
  readonly file: string
  readonly args: readonly string[]
  readonly parse: (text: string) => ServiceState | undefined
}

/** Maximum bytes read of a manager's output. */
const maxBytes = 64 * 1024

/**
 * Asks this machine's service manager about a service. Throws ProbeError `internal` if there is no manager, and
 * `protocol` if its output cannot be read.
 */
export async function serviceState(service: string, signal: AbortSignal): Promise<ServiceState> {
  const { file, args, parse } = await managerFor(service)
  const ended = await runProgram({ file, args, env: plainEnvironment(), keep: maxBytes }, signal)
  const state = parse(ended.stdout) ?? parse(ended.stderr)
  if (state) return state
  const output =
    [ended.stderr, ended.stdout].map((text) => sanitize(text.trim())).find((text) => text !== '') ?? 'nothing'
  throw new ProbeError('protocol', `${file} does not report the state of the service: ${output}`)
}

async function managerFor(service: string): Promise<Manager> {
  switch (process.platform) {
    case 'win32':
      return { file: system32File('sc.exe'), args: scArgs(service), parse: parseWindows }
    case 'darwin':
      return { file: launchctl, args: launchctlArgs(service), parse: parseLaunchd }
    case 'linux':
      return {
        file: await systemctl(),
        args: systemctlArgs(service),
        parse: (text) => parseSystemd(text, Number(process.hrtime.bigint() / 1_000n)),
      }
    default:
      throw new ProbeError('internal', `services cannot be checked on ${process.platform}: use the kind process`)
  }
}

/**
 * This folder exists only where systemd is running. The presence of systemctl proves nothing: an image may contain it
 * without running systemd.
 */
const systemdFolder = '/run/systemd/system'

async function systemctl(): Promise<string> {
  const { access } = await import('node:fs/promises')
  const exists = async (path: string): Promise<boolean> =>
    await access(path).then(
      () => true,
      () => false,
    )
  const [runs, ...places] = await Promise.all([systemdFolder, ...systemctlPlaces].map(exists))
  if (!runs) {
    throw new ProbeError(
      'internal',
      'systemd is not running here (as in most containers), so services cannot be checked: use the kind process',
    )
  }
  const file = systemctlPlaces[places.indexOf(true)]
  if (file === undefined) throw new ProbeError('internal', `systemctl not found at ${systemctlPlaces.join(' or ')}`)
  return file
}

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

/** Where distributions install systemctl. The PATH is not searched: whoever sets it would choose the program. */
const systemctlPlaces = ['/usr/bin/systemctl', '/bin/systemctl', '/run/current-system/sw/bin/systemctl']

export const systemctlArgs = (service: string): readonly string[] => [
  'show',
  '--no-pager',
  `--property=${properties.join(',')}`,
  '--',
  service,
]

/**
 * Parses the output of `systemctl show`. `nowUs` is the current time of the same monotonic clock, in microseconds.
 * Returns undefined for any other text.
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
  const is = systemdState(active, sub ?? '')
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
    // 0: the service has never been in this state.
    sinceMs: since ? Math.max(0, (nowUs - since) / 1_000) : undefined,
    restarts: whole('NRestarts'),
    pid: pid || undefined,
    why: result !== undefined && result !== '' && result !== 'success' ? result : undefined,
  }
}

function systemdState(active: string, sub: string): ServiceState['is'] {
  // The service exited and waits for its restart.
  if (sub === 'auto-restart' || active === 'failed') return 'failed'
  if (active === 'active' || active === 'reloading') return 'running'
  return active === 'activating' || active === 'deactivating' || active === 'maintenance' ? 'changing' : 'stopped'
}

export const scArgs = (service: string): readonly string[] => ['queryex', service]

/** The states by number, because their names are localized. */
const states: Readonly<Record<number, readonly [ServiceState['is'], string]>> = {
  1: ['stopped', 'stopped'],
  2: ['changing', 'being started'],
  3: ['changing', 'being stopped'],
  4: ['running', 'running'],
  5: ['changing', 'being resumed'],
  6: ['changing', 'being paused'],
  7: ['stopped', 'paused'],
}
/** `ERROR_SERVICE_NEVER_STARTED`: not an error. */
const neverStarted = 1077

/** Parses the output of `sc.exe queryex`, in any language of Windows. Returns undefined for any other text. */
export function parseWindows(text: string): ServiceState | undefined {
  // ERROR_SERVICE_DOES_NOT_EXIST
  if (/\b1060\b/.test(text.split(/\r?\n/, 1)[0] ?? '')) return { is: 'absent', words: 'not installed' }
  const values = text.split(/\r?\n/).flatMap((line) => {
    const colon = line.indexOf(':')
    const [label, value] = [line.slice(0, Math.max(0, colon)).trim(), line.slice(colon + 1).trim()]
    return /^\s/.test(line) && label !== '' && value !== '' ? [{ label, value }] : []
  })
  // The type is always first and the state second, whatever their localized names.
  const state = /^(\d)\b/.exec(values[1]?.value ?? '')?.[1]
  const stateName = state === undefined ? undefined : states[Number(state)]
  if (!stateName) return undefined
  const [is, words] = stateName
  const figure = (name: string): number | undefined => {
    const match = values.find(({ label }) => label === name)?.value
    return match !== undefined && /^\d{1,10}\b/.test(match) ? Number.parseInt(match, 10) : undefined
  }
  const [exit = 0, own = 0] = [figure('WIN32_EXIT_CODE'), figure('SERVICE_EXIT_CODE')]
  // 1066: the service-specific exit code says more.
  const code = exit === 1066 ? own : exit
  const isFailure = is === 'stopped' && code !== 0 && code !== neverStarted
  return {
    is: isFailure ? 'failed' : is,
    words,
    pid: figure('PID') || undefined,
    why: isFailure ? `exit code ${code}` : undefined,
  }
}

const launchctl = '/bin/launchctl'
const launchctlArgs = (service: string): readonly string[] => ['print', `system/${service}`]

/** Parses the output of `launchctl print system/LABEL`. Returns undefined for any other text. */
export function parseLaunchd(text: string): ServiceState | undefined {
  if (/^(?:Could not find service|Bad request)/m.test(text)) return { is: 'absent', words: 'not found' }
  // Reads the values of the service itself; those of its parts are indented further.
  const lines = text.split('\n')
  const value = (name: string): string | undefined => {
    const begin = `\t${name} = `
    return lines
      .find((line) => line.startsWith(begin) && line.length > begin.length)
      ?.slice(begin.length)
      .trim()
  }
  const state = value('state')
  if (state === undefined) return undefined
  const [pid, runs] = [value('pid'), value('runs')].map((one) =>
    one && /^\d{1,10}$/.test(one) ? Number(one) : undefined,
  )
  const exit = value('last exit code')
  const code = exit === undefined ? undefined : /^-?\d{1,10}/.exec(exit)?.[0]
  const isFailure = state !== 'running' && code !== undefined && code !== '0'
  return {
    is: state === 'running' ? 'running' : isFailure ? 'failed' : 'stopped',
    words: state.slice(0, 64),
    pid,
    // The first start is not a restart.
    restarts: runs === undefined ? undefined : Math.max(0, runs - 1),
    why: isFailure ? `exit code ${code}` : undefined,
  }
}

const which = {
  service: {
    type: 'text',
    observed: true,
    required: true,
    // A leading dash would be read as an option, and two leading backslashes as another machine.
    pattern: /^[A-Za-z0-9_@][A-Za-z0-9@:_.\\$ -]{0,254}$/,
    doc: 'Name of the service: nginx or nginx.service (systemd), the short name (Windows), the label (launchd)',
  },
} as const satisfies SettingsSpec

const check = checksOn<ServiceState>()
const limitCheck = limitsOn<ServiceState>()

export const state = check({
  depth: 'Basic',
  results: { state: 'The service is running; a failure while it is being replaced is deployment-related' },
  settings: which,
  observe: (service) => Promise.resolve(service),
  evaluate: ({ is, words, sinceMs, pid, why }, { service }) => {
    const since = sinceMs === undefined ? '' : ` for ${showDuration(sinceMs)}`
    const summary = sanitize(words, 80)
    if (is === 'running') return ok('state', `${summary}${since}${pid === undefined ? '' : `, process ${pid}`}`)
    if (is === 'absent') return fail('state', 'data', `service ${service} does not exist here (${summary})`)
    const because = why === undefined ? '' : `: ${sanitize(why, 80)}`
    const message = `not running: ${summary}${since}${because}`
    return is === 'changing' ? fail('state', 'data', message, { deployment: true }) : fail('state', 'data', message)
  },
})

export const restarts = limitCheck({
  depth: 'Standard',
  check: 'restarts',
  proves: 'The service manager has not restarted the service too often; omitted where it does not count restarts',
  setting: 'restarts',
  unit: 'count',
  default: { warn: 3 },
  doc: 'Maximum number of restarts by the service manager (systemd, launchd)',
  observe: (service) => Promise.resolve(service),
  evaluate: ({ is, restarts: value }, compare) =>
    is === 'absent' || value === undefined ? [] : compare({ what: 'restarts', value }),
})

export const restarted = limitCheck({
  depth: 'Advanced',
  check: 'restarted',
  proves: 'Warns when the service started recently; omitted where the service manager does not report it',
  setting: 'restarted',
  unit: 'duration',
  default: { warn: 5 * 60_000 },
  doc: 'Minimum uptime of the service (systemd)',
  bound: 'atLeast',
  observe: (service) => Promise.resolve(service),
  evaluate: ({ is, sinceMs: value }, compare) =>
    is !== 'running' || value === undefined ? [] : compare({ what: 'up for', value }),
})

/** A service of this machine, as systemd, Windows or launchd describes it. Starts and stops nothing. */
export default machineKind({
  name: 'service',
  title: 'A service on this machine is running (systemd, Windows, launchd)',
  cost: { machine: 'It asks the service manager of this machine.' },
  settings: which,
  open({ service }: Values<typeof which>, { step, signal }: CheckContext): Promise<ServiceState> {
    step('state', service)
    return serviceState(service, signal)
  },
  checks: [state, restarts, restarted],
})
