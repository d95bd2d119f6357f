import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import exec from '../../../src/core/checks/kinds/exec/index.ts'
import { expectResult } from '../../support/engine/finds.ts'
import { runKind } from '../../support/engine/run-kind.ts'
import { escapeSequences } from '../../support/faults/faults.ts'
import { endsByDeadline } from '../../support/suite/deadline.ts'
import { suiteWith } from '../../support/suite/peer.ts'
import { temporaryFolder } from '../../support/suite/temporary-folder.ts'
import { until } from '../../support/suite/until.ts'

let folder: string
let allowed: string
beforeEach(() => {
  folder = temporaryFolder()
  allowed = join(folder, 'plugins')
  mkdirSync(allowed, { mode: 0o755 })
  chmodSync(allowed, 0o755)
})

/** A real program of the shell's. */
function program(body: string, name = 'check_it', into = allowed): string {
  const path = join(into, name)
  writeFileSync(path, `#!/bin/sh\n${body}\n`)
  chmodSync(path, 0o755)
  return path
}
/** Its state, then its figures. */
const lookForFigures = (
  command: string,
  args: readonly string[] = [],
  options: Parameters<typeof runKind>[3] = {},
): Promise<readonly Result[]> =>
  runKind(exec, { command, args }, 'Basic', { services: { exec: { allow: [allowed] } }, ...options })
const look = async (
  command: string,
  args: readonly string[] = [],
  options: Parameters<typeof runKind>[3] = {},
): Promise<Result> => {
  const [result, ...figures] = await lookForFigures(command, args, options)
  expect(figures.filter(({ check }) => check !== 'figure')).toEqual([])
  if (!result) throw new Error('it found nothing')
  return result
}
const alive = (pid: number): boolean =>
  existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))

describe('the output', () => {
  test.each([
    [0, 'ok', undefined],
    [1, 'warning', undefined],
    [2, 'failed', 'threshold'],
    [3, 'failed', 'data'],
    [4, 'failed', 'protocol'],
    [127, 'failed', 'protocol'],
  ])('exit code %i is %s', async (code, status, fault) => {
    const result = await look(program(`echo 'DISK is so | /=3%;80;90'; echo 'and more'; echo 'oh' >&2; exit ${code}`))
    expect(result).toMatchObject({ check: 'result', status, details: ['and more', 'oh'] })
    expect(result.fault).toBe(fault)
    expect(result.message).toContain('DISK is so')
    expect(result.message).not.toContain('80;90')
  })

  test('a program without output, or one that a signal ends, is reported', async () => {
    expect((await look(program('exit 2'))).message).toBe('no output')
    const unread = await look(program("echo 'cannot read /etc/probe.conf' >&2; echo 'second' >&2; exit 3"))
    expect(unread.message).toBe('unknown: no output; on standard error: cannot read /etc/probe.conf')
    const killed = await look(program('kill -9 $$'))
    expect(killed).toMatchObject({ status: 'failed', fault: 'protocol', message: expect.stringContaining('SIGKILL') })
  })

  test('arguments reach it unchanged: no shell reads them', async () => {
    const result = await look(program('printf "%s," "$@"'), ['$(id)', 'a b', '; rm -rf /', "'", '*'])
    expect(result.message).toContain("$(id),a b,; rm -rf /,',*,")
  })

  test("its environment has a few variables, and none of svc's own", async () => {
    process.env['SVC_TEST_SECRET'] = 'hunter2-of-exec'
    onTestFinished(() => {
      delete process.env['SVC_TEST_SECRET']
    })

    const result = await look(program('env'))
    const details = [result.message, ...(result.details ?? [])].join('\n')
    expect(details).toContain('PATH=/usr/bin:/bin')
    expect(details).not.toContain('hunter2')
  })

  test('hostile output becomes one line, without escapes and truncated', async () => {
    writeFileSync(join(allowed, 'said'), `${escapeSequences}${'y'.repeat(300_000)}\n${'z\n'.repeat(100_000)}`)
    const result = await look(program(`cat ${join(allowed, 'said')}; exit 1`))
    for (const line of [result.message, ...(result.details ?? [])]) {
      expect(line).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/)
      expect(line.length).toBeLessThan(400)
    }
    expect(result.details?.at(-1)).toBe('(the rest of the output was discarded)')
  })
})

describe('performance data', () => {
  const printed = (output: string, end = 'exit 0'): Promise<readonly Result[]> => {
    writeFileSync(join(allowed, 'output'), output)
    return lookForFigures(program(`cat ${join(allowed, 'output')}; ${end}`))
  }
  const figuresOf = async (output: string): Promise<readonly Result[]> => (await printed(output)).slice(1)
  const measured = async (output: string) =>
    (await figuresOf(output)).map(({ subject, measurement }) => ({ label: subject, ...measurement }))

  test('each value is a result under its label, with the limits of the plug-in, and the state keeps its duration', async () => {
    const output = 'OK - load average: 0.42, 0.31, 0.20|load1=0.420;5.000;10.000;0; load5=0.310;4.000;6.000;0;\n'
    const [state, ...figures] = await printed(output)
    expect(state).toMatchObject({ check: 'result', status: 'ok', measurement: { unit: 'milliseconds' } })
    expect(state?.message).toMatch(/^OK - load average: 0\.42, 0\.31, 0\.20 \(after .+\)$/)
    expect(figures).toEqual([
      {
        check: 'figure',
        status: 'ok',
        subject: 'load1',
        message: 'load1 0.42 (plug-in: warn 5, fail 10)',
        measurement: { value: 0.42, unit: 'count', warn: 5, limit: 10, bound: 'atMost' },
      },
      expect.objectContaining({ subject: 'load5', measurement: expect.objectContaining({ value: 0.31 }) }),
    ])
  })

  test.each([
    ['1.5s', { value: 1_500, unit: 'milliseconds' }],
    ['20ms', { value: 20, unit: 'milliseconds' }],
    ['1500us', { value: 1.5, unit: 'milliseconds' }],
    ['85%', { value: 85, unit: 'percent' }],
    ['512B', { value: 512, unit: 'bytes' }],
    ['2KB', { value: 2_048, unit: 'bytes' }],
    ['1.5MB', { value: 1_572_864, unit: 'bytes' }],
    ['1GB', { value: 2 ** 30, unit: 'bytes' }],
    ['2TB', { value: 2 ** 41, unit: 'bytes' }],
    ['123456c', { value: 123_456, unit: 'count' }],
    ['-7', { value: -7, unit: 'count' }],
    ['.5', { value: 0.5, unit: 'count' }],
    ['1e3', { value: 1_000, unit: 'count' }],
    ['41C', { value: 41, unit: 'count' }],
  ])('the value %s has a unit that svc knows', async (text, expected) => {
    expect(await measured(`OK | a=${text}\n`)).toEqual([{ label: 'a', ...expected }])
  })

  test('an unknown unit appears in the message', async () => {
    expect((await figuresOf('OK | temperature=41C;50;60\n'))[0]?.message).toBe(
      'temperature 41 C (plug-in: warn 50 C, fail 60 C)',
    )
  })

  test.each([
    ['1s;2;3', { warn: 2_000, limit: 3_000, bound: 'atMost' }],
    ['50;~:60;0:70', { warn: 60, limit: 70, bound: 'atMost' }],
    ['50;;70', { limit: 70, bound: 'atMost' }],
    ['50;20:;10:', { warn: 20, limit: 10, bound: 'atLeast' }],
    ['50;10:20;70', { limit: 70, bound: 'atMost' }],
    ['50;@10:20;@0:5', {}],
    ['50;10:;90', {}],
    ['50;~:;a', {}],
    ['50;;;0;100', {}],
  ])('of %s the limits on one side apply to the value', async (text, limits) => {
    const [figure] = await figuresOf(`OK | a=${text}\n`)
    expect(JSON.parse(JSON.stringify(figure?.measurement))).toEqual({
      value: expect.any(Number),
      unit: expect.any(String),
      ...limits,
    })
  })

  test('a label in quotes may contain blanks, equals signs and quotes; after an unclosed quote there is no value', async () => {
    const output = "OK | 'free space /'=1MB 'it''s = so'=2 C:\\=3 e=5 'an unfinished=4 f=6\n"
    expect((await figuresOf(output)).map(({ subject, measurement }) => [subject, measurement?.value])).toEqual([
      ['free space /', 2 ** 20],
      ["it's = so", 2],
      ['C:\\', 3],
      ['e', 5],
    ])
  })

  test('values follow the first bar of the long text too, and none of them is in a message', async () => {
    const output = 'DISK OK | /=1MB\nfirst line\nsecond line | /boot=2MB\n/home=3MB;;\n/var/log=4MB\n'
    const [state, ...figures] = await printed(output)
    expect(state?.details).toEqual(['first line', 'second line'])
    expect(figures.map(({ subject }) => subject)).toEqual(['/', '/boot', '/home', '/var/log'])
  })

  test.each([
    [1, 'warning'],
    [2, 'failed'],
    [3, 'failed'],
  ])('exit code %i decides the state, and a value beyond its limits does not', async (code, status) => {
    const [state, figure] = await printed('SO | a=99;1;2\n', `exit ${code}`)
    expect(state).toMatchObject({ check: 'result', status })
    expect(figure).toMatchObject({ check: 'figure', status: 'ok', measurement: { value: 99, warn: 1, limit: 2 } })
    expect((await printed('SO | a=99;1;2\n'))[0]).toMatchObject({ check: 'result', status: 'ok' })
  })

  test.each([
    'a=',
    'a',
    '=1',
    "''=1",
    'a=U',
    'a=x',
    'a=1,5',
    'a=1.2.3',
    'a=NaN',
    'a=Infinity',
    'a=1e999',
    'a=1;2;3;4;5;6',
    'a=1=2',
    "'a'",
    '1',
    '|',
    'a=0x10',
  ])('invalid performance data is skipped, and the next value is read: %s', async (item) => {
    const [state, ...figures] = await printed(`OK | ${item} next=7\n`)
    expect(state?.status).toBe('ok')
    expect(figures.map(({ subject, measurement }) => [subject, measurement?.value])).toEqual([['next', 7]])
  })

  test('the first of two values with one label is kept', async () => {
    expect(await measured('OK | a=1 a=2\n')).toEqual([{ label: 'a', value: 1, unit: 'count' }])
  })

  test('fifty values are kept, and the state reports that there are more', async () => {
    const many = (count: number): string => Array.from({ length: count }, (_, n) => `f${n}=${n}`).join(' ')
    const [all, ...fifty] = await printed(`OK | ${many(50)}\n`)
    expect([fifty.length, all?.details]).toEqual([50, []])
    const [state, ...figures] = await printed(`OK | ${many(51)}\n`)
    expect(figures).toHaveLength(50)
    expect(state?.details).toEqual(['(figures beyond the first 50 were discarded)'])
  })

  test('a value that is cut off at the size limit is dropped', async () => {
    const whole = `OK | a=1 ${'x'.repeat(65_536 - 11)} b=`
    expect(await measured(`${whole}123456\n`)).toEqual([{ label: 'a', value: 1, unit: 'count' }])
    const cut = `OK | a=1 ${'x'.repeat(65_536 - 15)} b=123456\n`
    expect(await measured(cut)).toEqual([{ label: 'a', value: 1, unit: 'count' }])
  })

  test('a program that ends by a signal or with another code has no values', async () => {
    expect(await printed('OK | a=1', 'kill -9 $$')).toHaveLength(1)
    expect(await printed('OK | a=1', 'exit 4')).toHaveLength(1)
  })

  test('hostile labels become one bounded line without escapes', async () => {
    const [, ...figures] = await printed(
      `OK | '${escapeSequences.replaceAll("'", '')}'=1 '${'y'.repeat(200)}'=2 '${'z'.repeat(300)}'=3\n`,
    )
    expect(figures.length).toBeGreaterThan(0)
    for (const { message, subject = '' } of figures) {
      for (const text of [message, subject]) {
        expect(text).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/)
        expect(text.length).toBeLessThan(200)
      }
    }
  })
})

const plugins = '/usr/lib/nagios/plugins'
const noPlugins = existsSync(join(plugins, 'check_load')) ? undefined : `there is no ${plugins}/check_load`
suiteWith(noPlugins, 'the monitoring plug-ins', () => {
  test.each([
    ['check_load', ['-w', '500', '-c', '900'], 'load1', 'count'],
    ['check_disk', ['-w', '1%', '-c', '1%', '-p', '/'], '/', 'bytes'],
  ])('%s reports values', async (name, args, label, unit) => {
    const results = await lookForFigures(join(plugins, name), args, { services: { exec: { allow: [plugins] } } })
    expect(results.map(({ subject, measurement }) => [subject, measurement?.unit])).toContainEqual([label, unit])
  })
})

describe('resource limits', () => {
  test('H9 at the deadline it is killed with all that it started', async () => {
    const pids = join(allowed, 'pids')
    const path = program(`sleep 300 & echo $! > ${pids}; echo $$ >> ${pids}; trap '' TERM; wait`)
    const result = await endsByDeadline(700, look(path, [], { timeoutMs: 700 }))
    expect(result).toMatchObject({ status: 'failed', fault: 'timeout' })
    const ids = readFileSync(pids, 'utf8').trim().split('\n').map(Number)
    expect(ids).toHaveLength(2)
    await until(() => !ids.some(alive))
  })

  test('a process that it leaves running is killed, and does not delay the result', async () => {
    const pids = join(allowed, 'pids')
    const result = await look(program(`sleep 300 & echo $! > ${pids}; echo fine`))
    // Not "timeout": the result does not wait for what sleeps on.
    expect(result).toMatchObject({ status: 'ok', message: expect.stringContaining('fine') })
    const id = Number(readFileSync(pids, 'utf8'))
    await until(() => !alive(id))
  })

  test('a program with endless output is ended before the deadline', async () => {
    const result = await look(program('yes'))
    expectResult(result, 'failed (data): …does not stop writing output: it was ended…')
  })

  test('it has no standard input to wait for', async () => {
    expect(await look(program('cat; echo read'))).toMatchObject({ status: 'ok' })
  })
})

describe('allowed programs', () => {
  const refusal = async (command: string, options: Parameters<typeof runKind>[3] = {}): Promise<string> => {
    const result = await look(command, [], options)
    expect(result).toMatchObject({ status: 'failed', fault: 'data' })
    return result.message
  }

  test("nothing runs unless the system's file allows it, and the message gives the reason", async () => {
    const path = program(`touch ${join(folder, 'ran')}`)
    expect(await refusal(path, { services: { exec: undefined } })).toContain(
      "only the system's svc.yaml can turn it on",
    )
    const off = { allow: [], off: 'there is no /etc/svc/svc.yaml, which alone can allow it' }
    expect(await refusal(path, { services: { exec: off } })).toBe(`exec is off: ${off.off}`)
    expect(existsSync(join(folder, 'ran'))).toBe(false)
  })

  test('only programs in an allowed folder run, however the path is written', async () => {
    const other = join(folder, 'plugins-of-mine')
    mkdirSync(other, { mode: 0o755 })
    const outside = program('exit 0', 'check_it', other)
    expect(await refusal(outside)).toContain('is in no folder that')
    expect(await refusal(`${allowed}/../plugins-of-mine/check_it`)).toContain('is in no folder that')
    expect(await refusal('/bin/sh')).toContain('is in no folder that')
    expect(await refusal('check_it')).toContain('is not an absolute path')
    expect(await refusal(allowed)).toContain('is in no folder that')
    expect(await refusal(join(allowed, 'none'))).toContain('does not exist')
    symlinkSync(outside, join(allowed, 'link'))
    expect(await refusal(join(allowed, 'link'))).toContain(`leads to ${outside}`)
    expect((await look(`${other}/../plugins/${program('echo in').slice(allowed.length + 1)}`)).status).toBe('ok')
  })

  test('nothing runs that another account could have changed', async () => {
    const path = program('exit 0')
    chmodSync(path, 0o775)
    expect(await refusal(path)).toContain('can be written by others (mode 775)')
    chmodSync(path, 0o755)
    chmodSync(allowed, 0o777)
    expect(await refusal(path)).toContain(`${allowed} can be written by others`)
    chmodSync(allowed, 0o755)
    const inside = join(allowed, 'more')
    mkdirSync(inside)
    chmodSync(inside, 0o777)
    expect(await refusal(program('exit 0', 'deep', inside))).toContain(`${inside} can be written by others`)
    if (process.getuid?.() !== 0) return
    chownSync(path, 65_534, 65_534)
    expect(await refusal(path)).toContain('belongs to another user (uid 65534)')
  })

  test('a file that is not a program is reported as such', async () => {
    const path = program('exit 0')
    writeFileSync(path, '#!/nowhere/sh\n')
    expect(await look(path)).toMatchObject({ status: 'failed', fault: 'internal' })
    chmodSync(path, 0o644)
    expectResult(await look(path), '(internal): …this account has no permission to run it…')
    expect(await refusal(join(allowed, '.'))).toMatch(/is not a program|is in no folder/)
  })
})
