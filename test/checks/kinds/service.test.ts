import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { readSettings } from '../../../src/core/base/settings/index.ts'
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
} from '../../../src/core/checks/kinds/service.ts'
import { evaluated, runKind } from '../../support/engine/run-kind.ts'
import { escapeSequences } from '../../support/faults/faults.ts'

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

describe('systemd, simulated: output of systemctl show', () => {
  test('a service that runs has its start time, restarts and process', () => {
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

  test('an absent, empty or invalid value is omitted, and other text is ignored', () => {
    const odd = systemd({ NRestarts: '[not set]', MainPID: '', ActiveEnterTimestampMonotonic: '0' })
    expect(parseSystemd(odd, nowUs)).toMatchObject({ restarts: undefined, pid: undefined, sinceMs: undefined })
    expect(parseSystemd('System has not been booted with systemd', nowUs)).toBeUndefined()
    expect(parseSystemd('', nowUs)).toBeUndefined()
  })

  test('a name is one argument behind the options', () => {
    expect(systemctlArgs('a b').slice(-2)).toEqual(['--', 'a b'])
  })
})

describe('Windows, simulated: output of sc.exe queryex', () => {
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

  test('a service has its process, in another language as well', () => {
    expect(parseWindows(sc('4  RUNNING'))).toMatchObject({ is: 'running', words: 'running', pid: 2_280 })
    expect(parseWindows(sc('4  RUNNING', '', ['TYP', 'STATUS']))).toMatchObject({ is: 'running' })
  })

  test('a service that ended with an error has failed; one that never started is only stopped', () => {
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

  test('a service that is not installed is absent, and other text is ignored', () => {
    const absent =
      '[SC] EnumQueryServicesStatus:OpenService FAILED 1060:\r\n\r\nThe specified service does not exist.\r\n'
    expect(parseWindows(absent)).toEqual({ is: 'absent', words: 'not installed' })
    expect(parseWindows('Access is denied.')).toBeUndefined()
    expect(scArgs('MSSQL$ONE')).toEqual(['queryex', 'MSSQL$ONE'])
  })
})

describe('launchd, simulated: output of launchctl print', () => {
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

  test('an unknown service is absent, and other text is ignored', () => {
    expect(parseLaunchd('Could not find service "x" in domain for system')?.is).toBe('absent')
    expect(parseLaunchd(printed('\t\tstate = running'))).toBeUndefined()
  })
})

describe('evaluation', () => {
  test('running is ok; stopped, failed and absent fail with the details', () => {
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

  test('H5 a service that is being replaced is a deployment-related failure; one that stopped is not', () => {
    expect(judged({ is: 'changing', words: 'activating (start)' })).toMatchObject([
      { status: 'failed', deployment: true },
    ])
    expect(judged({ is: 'stopped', words: 'inactive (dead)' })[0]?.deployment).toBeUndefined()
  })

  test('restarts and a recent start warn, and are ok at the boundary', () => {
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

  test('text of the service manager is shown without escapes', () => {
    const [result] = judged({ is: 'failed', words: escapeSequences, why: escapeSequences })
    expect(result?.message).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/)
  })
})

test.each(['-H', '--host=x', '\\\\server', '', ' nginx', 'a\nb', 'a;b', 'a*'])(
  '%j is not a valid name of a service',
  (name) => {
    const read = readSettings(service.settings, { service: name }, { env: {}, folder: '.' })
    expect(read.problems).toHaveLength(1)
  },
)

test.each(['nginx', 'nginx.service', 'getty@tty1.service', 'MSSQL$ONE', 'com.example.agent', 'Windows Time'])(
  '%s is a valid name of a service',
  (name) => {
    expect(readSettings(service.settings, { service: name }, { env: {}, folder: '.' }).problems).toEqual([])
  },
)

// Where systemd runs the machine, the test queries a service that does not exist.
const runs = existsSync('/run/systemd/system')
test('this machine is queried, and the available details are reported', async () => {
  const [result, ...rest] = await runKind(service, { service: 'svc-test-nobody-has-this' }, 'Advanced')
  expect(rest).toEqual([])
  expect(result).toMatchObject({ check: 'state', status: 'failed' })
  if (process.platform === 'linux') {
    expect(result?.message).toContain(
      runs ? 'there is no service' : 'systemd is not running here (as in most containers)',
    )
  }
  const ended = AbortSignal.abort(new Error('ended'))
  await expect(serviceState('nobody', ended)).rejects.toThrow()
})
