import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { copyFile, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { isAlive } from '../../../src/core/base/running-process.ts'
import {
  fromProcessListing,
  isCalled,
  parseOpenFilesLimit,
  parseRss,
  parseStat,
  parseUptime,
  startedAt,
  type Usage,
} from '../../../src/core/base/system/processes.ts'
import processKind, { cpu, memory, openFiles, pidIn, restarted } from '../../../src/core/checks/kinds/process.ts'
import { files } from '../../support/engine/files.ts'
import { expectResult, finds, findsOnly } from '../../support/engine/finds.ts'
import { checked, evaluated, runKind } from '../../support/engine/run-kind.ts'
import { resultsWithoutDescriptors } from '../../support/faults/exhausted.ts'
import { mountsMissing, resultsOfStuckProcess } from '../../support/faults/mounts.ts'
import { suiteWith } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

/** Longer than the 15 characters that the kernel keeps of a name. */
const name = `svc-test-sleeper-${process.pid}`
let folder = ''
const children: ChildProcess[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-process-'))
  await copyFile('/bin/sleep', join(folder, name))
})
afterEach(async () => {
  const ended = children.splice(0).map((child) => {
    const gone =
      child.exitCode === null && child.signalCode === null ? new Promise((done) => child.once('exit', done)) : 0
    child.kill('SIGKILL')
    return gone
  })
  await Promise.all(ended)
})
afterAll(async () => await rm(folder, { recursive: true }))

/** A real process of that name; resolves when it runs. */
async function sleeper(): Promise<number> {
  const child = spawn(join(folder, name), ['47.11'])
  children.push(child)
  await new Promise((resolve, reject) => child.once('spawn', () => resolve(0)).once('error', reject))
  return child.pid ?? 0
}

suiteWith(mountsMissing, 'a process that waits for a disk that does not answer', () => {
  test('runs, and is a warning', () => {
    const results = resultsOfStuckProcess()
    expect(checked(results, 'running').status).toBe('ok')
    expect(checked(results, 'waiting')).toMatchObject({ status: 'warning' })
    expect(checked(results, 'waiting').message).toContain('(state D)')
  })
})

test('without file descriptors, a process that runs is not reported as absent', async () => {
  const pidFile = join(folder, 'pid')
  writeFileSync(pidFile, String(await sleeper()))
  for (const settings of [{ executable: name }, { pidFile }]) {
    const results = resultsWithoutDescriptors('process', settings, 'Basic')
    await findsOnly(results, 'running not checked (starved): …svc has too many files open…')
  }
})

describe('a process of this machine', () => {
  test('is found by the exact name of its executable, also beyond 15 characters', async () => {
    const pid = await sleeper()
    await findsOnly(runKind(processKind, { executable: name }), [
      `running ok: running: process ${pid}`,
      { measurement: { value: 1, unit: 'count' } },
    ])
    expect(await runKind(processKind, { executable: name.slice(0, -1) })).toMatchObject([{ status: 'failed' }])
  })

  test('is found by text of its command line, which is never shown', async () => {
    const pid = await sleeper()
    const results = await runKind(processKind, { match: `${name} 47.11` }, 'Advanced')
    await finds(results, `running: running: process ${pid}`)
    expect(JSON.stringify(results)).not.toContain('47.11')
    expect(JSON.stringify(results)).not.toContain(name)
  })

  test('is never svc itself', async () => {
    const before = process.title
    // Replaces the command line that /proc shows of this process.
    process.title = `svcself${process.pid}`
    onTestFinished(() => {
      process.title = before
    })

    expect(await readFile('/proc/self/cmdline', 'utf8')).toContain(process.title)
    expect(await runKind(processKind, { match: `svcself${process.pid}` })).toMatchObject([{ status: 'failed' }])
    expect(await runKind(processKind, { executable: `svcself${process.pid}` })).toMatchObject([{ status: 'failed' }])
  })

  test('has an expected count: too few and too many fail in Standard, not in Basic', async () => {
    await sleeper()
    await sleeper()
    const count = async (expected: { readonly min: number; readonly max?: number }) =>
      checked(await runKind(processKind, { executable: name, count: expected }, 'Standard'), 'count')
    expect(await count({ min: 2, max: 2 })).toMatchObject({ status: 'ok', message: '2 running (expected 2)' })
    expectResult(await count({ min: 3 }), 'failed (threshold): 2 running (fail below 3)')
    expect(await count({ min: 0, max: 1 })).toMatchObject({ status: 'failed', message: '2 running (expected 0 to 1)' })
    await findsOnly(runKind(processKind, { executable: name, count: { min: 3 } }), [
      'running ok',
      /^running: process \d+ and 1 more$/,
    ])
  })

  test('is ok when absent if none should run', () =>
    findsOnly(
      runKind(processKind, { executable: name, count: { min: 0, max: 0 } }, 'Advanced'),
      'running ok: none running, which `count` allows',
      'count ok: 0 running (expected 0)',
    ))

  test('that a signal has stopped does not count', async () => {
    const child = spawn(join(folder, name), ['30'])
    children.push(child)
    await until(async () => (await runKind(processKind, { executable: name }))[0]?.status === 'ok')
    child.kill('SIGSTOP')
    await until(async () => (await runKind(processKind, { executable: name }))[0]?.status === 'failed')
    const [result] = await runKind(processKind, { executable: name })
    expect(result?.message).toBe(`not running; 1 stopped by a signal or a debugger (process ${child.pid})`)
    const beside = spawn(join(folder, name), ['30'])
    children.push(beside)
    await until(async () => (await runKind(processKind, { executable: name }))[0]?.status === 'warning')
  })

  test('has the memory that the kernel reports, which is evaluated where a threshold is set', async () => {
    const pid = await sleeper()
    const resident = async (limit: number) =>
      checked(await runKind(processKind, { executable: name, memory: { limit } }, 'Standard'), 'memory')
    const residentBytes = await resident(2 ** 30)
    expectResult(residentBytes, `ok: …process ${pid} uses …`, { measurement: { unit: 'bytes' } })
    expect(residentBytes.measurement?.value).toBeGreaterThan(100_000)
    expect(await resident(1_000)).toMatchObject({ status: 'failed', fault: 'threshold' })
    const without = await runKind(processKind, { executable: name }, 'Standard')
    expect(without.map((result) => result.check)).toEqual(['running', 'count'])
  })

  test('has CPU use that is measured over half a second and only ever warns', async () => {
    const child = spawn(process.execPath, ['-e', 'for (;;) {}', name])
    children.push(child)
    await new Promise((resolve) => child.once('spawn', resolve))
    const result = checked(await runKind(processKind, { match: name, cpu: { limit: 1 } }, 'Standard'), 'cpu')
    expect(result).toMatchObject({ status: 'warning', measurement: { unit: 'percent' } })
    // On a busy machine, a process that never waits gets little of a processor.
    expect(result.measurement?.value).toBeGreaterThan(1)
  })

  test('that started recently is a warning in Advanced, with its open files', async () => {
    const pid = await sleeper()
    const results = await runKind(processKind, { executable: name }, 'Advanced')
    const restarted = checked(results, 'restarted')
    expect(restarted).toMatchObject({ status: 'warning', message: expect.stringContaining(`process ${pid} up for `) })
    expect(restarted.measurement?.value).toBeLessThan(60_000)
    await finds(results, ['open files', /^process \d+ has \d+ of \d+ files open: [\d.]+ % \(warn 70 %, fail 90 %\)$/])
  })

  test('must be named by the settings', async () => {
    expect(await runKind(processKind, {})).toMatchObject([
      { status: 'failed', fault: 'data', message: 'does not name a process: set executable, match or pidFile' },
    ])
  })
})

describe('a process id file', () => {
  const file = async (content: string): Promise<string> => {
    const path = join(folder, 'test.pid')
    await writeFile(path, content)
    return path
  }

  test('names the process', async () => {
    const pid = await sleeper()
    expect(await runKind(processKind, { pidFile: await file(`${pid}\n`) })).toMatchObject([
      { status: 'ok', message: `running: process ${pid}` },
    ])
    // svc's own file may be checked too.
    expect(await runKind(processKind, { pidFile: await file(`${process.pid}`) })).toMatchObject([{ status: 'ok' }])
  })

  test('of a process that has ended, or whose id another process uses, is a failure that reports that', async () => {
    const pid = await sleeper()
    const pidFile = await file(`${pid}\n`)
    expect(await runKind(processKind, { pidFile, executable: 'postgres' })).toMatchObject([{ status: 'failed' }])
    children[0]?.kill('SIGKILL')
    await new Promise((resolve) => children[0]?.once('exit', resolve))
    expect(await runKind(processKind, { pidFile })).toMatchObject([
      { status: 'failed', message: `not running; ${pidFile} names process ${pid}` },
    ])
  })

  test('H32 that was written long before its process started means another process, and fails', async () => {
    const pidFile = await file(`${await sleeper()}\n`)
    const minutesAgo = (minutes: number): Date => new Date(Date.now() - minutes * 60_000)
    await utimes(pidFile, minutesAgo(0.5), minutesAgo(0.5))
    await finds(runKind(processKind, { pidFile }), 'running ok')
    await utimes(pidFile, minutesAgo(2), minutesAgo(2))
    await finds(
      runKind(processKind, { pidFile }),
      'running failed: …started after the file was written: another process has its id…',
    )
  })
  test('H32 that is older than the start of the machine is a warning: its clock may have been wrong', async () => {
    const pidFile = await file(`${await sleeper()}\n`)
    await utimes(pidFile, 0, 0)
    await finds(runKind(processKind, { pidFile }), [
      'running warning',
      /^running: process \d+; .* was written before this machine started/,
    ])
  })

  test('that is missing or invalid is a failure that reports that', async () => {
    const missing = join(folder, 'missing.pid')
    expect(await runKind(processKind, { pidFile: missing })).toMatchObject([
      { status: 'failed', message: `not running; ${missing} does not exist` },
    ])
    for (const content of ['', 'abc', '-1', '0', '12x', '99999999999']) {
      const path = await file(content)
      expect(await pidIn(path, files)).toBe(`${path} contains no process id`)
    }
    expect(await pidIn(await file(' 42 \nanything\n'), files)).toMatchObject({ pid: 42 })
    expect(await pidIn(folder, files)).toBe(`${folder} is not a regular file`)
    expect(await pidIn(await file('1'.repeat(5_000)), files)).toContain('is larger than 4096 bytes')
  })
})

describe('thresholds', () => {
  const figures = (figure: Usage) => ({ since: 0, processes: [{ pid: 1, ...figure }] })

  test.each([
    [70, 'ok'],
    [71, 'warning'],
    [90, 'warning'],
    [91, 'failed'],
  ])('%s of 100 open files: %s', (open, status) => {
    expect(evaluated(openFiles, figures({ openFiles: { open, limit: 100 } }))).toMatchObject([
      { check: 'open files', status },
    ])
  })

  test('the youngest may be ten minutes old', () => {
    expect(evaluated(restarted, figures({ age: 600_000 }))).toMatchObject([{ status: 'ok' }])
    expect(evaluated(restarted, figures({ age: 599_999 }))).toMatchObject([{ status: 'warning' }])
  })

  test('CPU use that cannot be read is not checked, and a process that does not run has none', () => {
    const threshold = { cpu: { limit: 90 } }
    expect(evaluated(cpu, { count: 1, percent: undefined }, threshold)).toMatchObject([
      { check: 'cpu', status: 'failed', notChecked: 'missing' },
    ])
    expect(evaluated(cpu, { count: 0, percent: undefined }, threshold)).toEqual([])
  })

  test('memory and CPU use at the boundary are ok', () => {
    const threshold = { memory: { warn: 100, limit: 200 } }
    expect(evaluated(memory, figures({ rss: 100 }), threshold)).toMatchObject([{ status: 'ok' }])
    expect(evaluated(memory, figures({ rss: 200 }), threshold)).toMatchObject([{ status: 'warning' }])
    expect(evaluated(memory, figures({ rss: 201 }), threshold)).toMatchObject([{ status: 'failed' }])
    expect(evaluated(cpu, { count: 1, percent: 90 }, { cpu: { limit: 90 } })).toMatchObject([{ status: 'ok' }])
    expect(evaluated(cpu, { count: 1, percent: 91 }, { cpu: { limit: 90 } })).toMatchObject([{ status: 'warning' }])
  })
})

describe('the process lists of the kernel and of other systems', () => {
  test('a name may contain blanks and brackets', () => {
    const fields = 'S 1 1 1 0 -1 4194304 96 0 0 0 250 150 0 0 20 0 1 0 144796 3133440 382'
    expect(parseStat(`42 (a) b (c) ${fields}`)).toEqual({
      name: 'a) b (c',
      state: 'S',
      parent: 1,
      flags: 4_194_304,
      startTicks: 144_796,
      cpuTicks: 400,
    })
    expect(parseStat('')).toBeUndefined()
    expect(parseStat('42 (cut')).toBeUndefined()
    expect(parseStat('42 (cut) S 1')).toBeUndefined()
  })

  test('memory, limits and uptime', () => {
    expect(parseRss('VmPeak:\t  9000 kB\nVmRSS:\t    2048 kB\n')).toBe(2 * 2 ** 20)
    expect(parseRss('Name: kthreadd\n')).toBeUndefined()
    const limits =
      'Limit                     Soft Limit           Hard Limit           Units\nMax open files            1024                 524288               files\n'
    expect(parseOpenFilesLimit(limits)).toBe(1024)
    expect(
      parseOpenFilesLimit('Max open files            unlimited            unlimited            files\n'),
    ).toBeUndefined()
    expect(parseUptime('1447.96 2663.96\n')).toBe(1_447_960)
  })

  test('the listing of macOS and Windows', () => {
    const row = { params: '--flag secret', state: 'sleeping', memRss: 2048, started: '2026-01-01 10:00:00' }
    const at = Date.parse('2026-01-01T10:05:00')
    const [mac, windows] = fromProcessListing(
      [
        { ...row, pid: 7, name: 'nginx', command: '/usr/sbin/nginx' },
        { ...row, pid: 8, name: 'Store.EXE', command: 'C:\\Store.EXE', started: '' },
      ],
      at,
    )
    expect(mac).toMatchObject({ pid: 7, rss: 2 * 2 ** 20, age: 300_000, zombie: false })
    expect(mac?.command).toBe('/usr/sbin/nginx --flag secret')
    expect(windows?.age).toBeUndefined()
    expect(mac && isCalled(mac, 'nginx', 'darwin')).toBe(true)
    expect(mac && isCalled(mac, 'Nginx', 'darwin')).toBe(false)
    expect(windows && isCalled(windows, 'store', 'win32')).toBe(true)
    expect(windows && isCalled(windows, 'store.exe', 'win32')).toBe(true)
  })

  test('this process is alive with its start time, and an id beyond the maximum is not', async () => {
    expect(isAlive(process.pid)).toBe(true)
    expect(isAlive(1)).toBe(true)
    expect(isAlive(2 ** 22 + 1)).toBe(false)
    const began = await startedAt(process.pid, Date.now())
    // Two instants that were recorded when this process began, so nothing that happens now comes between them: the one
    // of the kernel, cut to a second, is the earlier, by as long as a busy machine takes to load Node.
    expect(began).toBeLessThan(performance.timeOrigin + 2_000)
    expect(began).toBeGreaterThan(performance.timeOrigin - 60_000)
    expect(await startedAt(2 ** 22 + 1, Date.now())).toBeUndefined()
  })
})

describe('a process that is not to run', () => {
  const look = async (settings: object) => {
    const results = await runKind(processKind, { executable: name, running: false, ...settings }, 'Standard')
    return results.map(({ check, status, message }) => `${check} ${status}: ${message}`)
  }

  test('H77 none runs', async () => {
    expect(await look({})).toEqual(['running ok: none running, as expected'])
    expect(await look({ executable: undefined, match: `no such ${name}` })).toEqual([
      'running ok: none running, as expected',
    ])
  })

  test('H77 one runs, or is stopped', async () => {
    const pid = await sleeper()
    expect((await look({}))[0]).toBe(`running failed: process ${pid} runs, and \`running: false\` expects none`)
    process.kill(pid, 'SIGSTOP')
    await until(async () => (await readFile(`/proc/${pid}/stat`, 'utf8')).includes(') T '))
    expect((await look({}))[0]).toBe(`running failed: process ${pid} runs, and \`running: false\` expects none`)
  })

  test.each([{ pidFile: '/run/x.pid' }, { count: { min: 1 } }])('H77 it is refused beside %j', (settings) => {
    const problem = processKind.validate?.({ executable: name, running: false, ...settings } as never)
    expect(problem).toContain('running: false needs executable or match')
  })
})
