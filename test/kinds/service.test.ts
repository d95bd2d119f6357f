import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import service, {
  parseLaunchd,
  parseSystemd,
  parseWindows,
  restarted,
  restarts,
  type ServiceState,
  scArgs,
  serviceState,
  state,
  systemctlArgs,
} from '../../src/core/kinds/service.ts'
import { readSettings } from '../../src/core/settings/index.ts'
import { escapeSequences } from '../support/faults.ts'
import { evaluated, runKind } from '../support/run-kind.ts'

const systemd = (values: Readonly<Record<string, string>>): string =>
  Object.entries({
    LoadState: 'loaded',
    ActiveState: 'active',
    SubState: 'running',
    Result: 'success',
    NRestarts: '0',
    MainPID: '812',
    StateChangeTimestampMonotonic: '40000000',
    ActiveEnterTimestampMonotonic: '40000000',
    ...values,
  })
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')
const nowUs = 100_000_000

const judged = (observed: ServiceState) => evaluated(state, observed, { service: 'nginx' })

describe('systemd, simulated: what systemctl show prints', () => {
  test('one that runs: since when, how often again, and its process', () => {
    expect(parseSystemd(systemd({}), nowUs)).toEqual({
      is: 'running',
      words: 'active (running)',
      sinceMs: 60_000,
      restarts: 0,
      pid: 812,
      why: undefined,
    })
  })

  test.each([
    [{ ActiveState: 'reloading', SubState: 'reload' }, 'running'],
    [{ ActiveState: 'active', SubState: 'exited', MainPID: '0' }, 'running'],
    [{ ActiveState: 'activating', SubState: 'start' }, 'changing'],
    [{ ActiveState: 'deactivating', SubState: 'stop-sigterm' }, 'changing'],
    [{ ActiveState: 'activating', SubState: 'auto-restart', Result: 'exit-code' }, 'failed'],
    [{ ActiveState: 'failed', SubState: 'failed', Result: 'oom-kill' }, 'failed'],
    [{ ActiveState: 'inactive', SubState: 'dead' }, 'stopped'],
    [{ LoadState: 'not-found', ActiveState: 'inactive', SubState: 'dead' }, 'absent'],
    [{ LoadState: 'masked', ActiveState: 'inactive', SubState: 'dead' }, 'stopped'],
  ])('%o', (values, is) => {
    expect(parseSystemd(systemd(values), nowUs)?.is).toBe(is)
  })

  test('a value that is absent, empty or no number is left out, and other text is none of it', () => {
    const odd = systemd({ NRestarts: '[not set]', MainPID: '', ActiveEnterTimestampMonotonic: '0' })
    expect(parseSystemd(odd, nowUs)).toMatchObject({ restarts: undefined, pid: undefined, sinceMs: undefined })
    expect(parseSystemd('System has not been booted with systemd', nowUs)).toBeUndefined()
    expect(parseSystemd('', nowUs)).toBeUndefined()
  })

  test('a name is one argument behind the options', () => {
    expect(systemctlArgs('a b').slice(-2)).toEqual(['--', 'a b'])
  })
})

describe('Windows, simulated: what sc.exe queryex prints', () => {
  const sc = (state: string, more = '', labels = ['TYPE', 'STATE']) =>
    `
SERVICE_NAME: Spooler
        ${labels[0]}               : 110  WIN32_OWN_PROCESS  (interactive)
        ${labels[1]}              : ${state}
                                (STOPPABLE, NOT_PAUSABLE, IGNORES_SHUTDOWN)
        WIN32_EXIT_CODE    : 0  (0x0)
        SERVICE_EXIT_CODE  : 0  (0x0)
        CHECKPOINT         : 0x0
        WAIT_HINT          : 0x0
        PID                : 2280
        FLAGS              :
${more}`.replaceAll('\n', '\r\n')

  test.each([
    ['4  RUNNING', 'running'],
    ['2  START_PENDING', 'changing'],
    ['3  STOP_PENDING', 'changing'],
    ['1  STOPPED', 'stopped'],
    ['7  PAUSED', 'stopped'],
  ])('%s', (state, is) => {
    expect(parseWindows(sc(state))?.is).toBe(is)
  })

  test('its process, and in another language the same', () => {
    expect(parseWindows(sc('4  RUNNING'))).toMatchObject({ is: 'running', words: 'running', pid: 2_280 })
    expect(parseWindows(sc('4  RUNNING', '', ['TYP', 'STATUS']))).toMatchObject({ is: 'running' })
  })

  test('one that ended with an error has failed; one that was never started is only stopped', () => {
    const ended = (code: string, own = '0') =>
      parseWindows(
        sc('1  STOPPED')
          .replace('WIN32_EXIT_CODE    : 0', `WIN32_EXIT_CODE    : ${code}`)
          .replace('SERVICE_EXIT_CODE  : 0', `SERVICE_EXIT_CODE  : ${own}`),
      )
    expect(ended('1067')).toMatchObject({ is: 'failed', why: 'exit code 1067' })
    expect(ended('1066', '42')).toMatchObject({ is: 'failed', why: 'exit code 42' })
    expect(ended('1077')).toMatchObject({ is: 'stopped', why: undefined })
  })

  test('one that is not installed is absent, and other text is none of it', () => {
    const absent =
      '[SC] EnumQueryServicesStatus:OpenService FAILED 1060:\r\n\r\nThe specified service does not exist.\r\n'
    expect(parseWindows(absent)).toEqual({ is: 'absent', words: 'not installed' })
    expect(parseWindows('Access is denied.')).toBeUndefined()
    expect(scArgs('MSSQL$ONE')).toEqual(['queryex', 'MSSQL$ONE'])
  })
})

describe('launchd, simulated: what launchctl print prints', () => {
  const printed = (lines: string): string =>
    `system/com.example.agent = {\n\tactive count = 1\n${lines}\n\tspawn type = daemon (3)\n}\n`
  test.each([
    ['\tstate = running\n\tpid = 73\n\truns = 3\n\tlast exit code = 1', { is: 'running', pid: 73, restarts: 2 }],
    ['\tstate = not running\n\truns = 1\n\tlast exit code = 0', { is: 'stopped', restarts: 0 }],
    ['\tstate = not running\n\tlast exit code = 78: EX_CONFIG', { is: 'failed', why: 'exit code 78' }],
    ['\tstate = not running\n\truns = 0\n\tlast exit code = (never exited)', { is: 'stopped', restarts: 0 }],
  ])('%j', (lines, state) => {
    expect(parseLaunchd(printed(lines))).toMatchObject(state)
  })

  test('one that is unknown is absent, and other text is none of it', () => {
    expect(parseLaunchd('Could not find service "x" in domain for system')?.is).toBe('absent')
    expect(parseLaunchd(printed('\t\tstate = running'))).toBeUndefined()
  })
})

describe('how it is judged', () => {
  test('running is ok; stopped, failed and absent fail, and say what is known', () => {
    expect(judged({ is: 'running', words: 'active (running)', sinceMs: 7_200_000, pid: 8 })).toMatchObject([
      { check: 'state', status: 'ok', message: 'active (running) for 2 h, process 8' },
    ])
    expect(judged({ is: 'failed', words: 'failed (failed)', sinceMs: 90_000, why: 'oom-kill' })).toMatchObject([
      { status: 'failed', fault: 'data', message: 'not running: failed (failed) for 1.5 min: oom-kill' },
    ])
    expect(judged({ is: 'absent', words: 'not found' })).toMatchObject([
      { status: 'failed', message: 'service nginx does not exist here (not found)' },
    ])
  })

  test('H5 one that is being replaced is a deployment-related failure; one that stopped is not', () => {
    expect(judged({ is: 'changing', words: 'activating (start)' })).toMatchObject([
      { status: 'failed', deployment: true },
    ])
    expect(judged({ is: 'stopped', words: 'inactive (dead)' })[0]?.deployment).toBeUndefined()
  })

  test('restarts and a late start warn, with the boundary on the side of ok', () => {
    const more = (times: number, sinceMs: number) => {
      const observed: ServiceState = { is: 'running', words: 'x', restarts: times, sinceMs }
      const results = [...evaluated(restarts, observed), ...evaluated(restarted, observed)]
      return results.map(({ check, status }) => `${check} ${status}`)
    }
    expect(more(3, 300_000)).toEqual(['restarts ok', 'restarted ok'])
    expect(more(4, 299_999)).toEqual(['restarts warning', 'restarted warning'])
    expect(evaluated(restarts, { is: 'running', words: 'x', sinceMs: 1 })).toEqual([])
    expect(restarted.depth).toBe('Advanced')
  })

  test('what the manager says is shown without escapes', () => {
    const [found] = judged({ is: 'failed', words: escapeSequences, why: escapeSequences })
    expect(found?.message).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/)
  })
})

test.each(['-H', '--host=x', '\\\\server', '', ' nginx', 'a\nb', 'a;b', 'a*'])('%j is no name of a service', (name) => {
  const read = readSettings(service.settings, { service: name }, { env: {}, folder: '.' })
  expect(read.problems).toHaveLength(1)
})

test.each(['nginx', 'nginx.service', 'getty@tty1.service', 'MSSQL$ONE', 'com.example.agent', 'Windows Time'])(
  '%s is one',
  (name) => {
    expect(readSettings(service.settings, { service: name }, { env: {}, folder: '.' }).problems).toEqual([])
  },
)

// Where systemd does run the machine, a service that nobody has is asked for instead.
const runs = existsSync('/run/systemd/system')
test('this machine is asked, and says what there is to say', async () => {
  const [found, ...rest] = await runKind(service, { service: 'svc-test-nobody-has-this' }, 'Advanced')
  expect(rest).toEqual([])
  expect(found).toMatchObject({ check: 'state', status: 'failed' })
  if (process.platform === 'linux') {
    expect(found?.message).toContain(
      runs ? 'there is no service' : 'systemd is not running here (as in most containers)',
    )
  }
  const ended = AbortSignal.abort(new Error('ended'))
  await expect(serviceState('nobody', ended)).rejects.toThrow()
})
