import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Result } from '../../src/core/engine/index.ts'
import exec from '../../src/core/kinds/exec.ts'
import { escapeSequences } from '../support/faults.ts'
import { runKind } from '../support/run-kind.ts'
import { until } from '../support/until.ts'

let folder: string
let allowed: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-exec-'))
  allowed = join(folder, 'plugins')
  mkdirSync(allowed, { mode: 0o755 })
  chmodSync(allowed, 0o755)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** A real program of the shell's. */
function program(body: string, name = 'check_it', into = allowed): string {
  const path = join(into, name)
  writeFileSync(path, `#!/bin/sh\n${body}\n`)
  chmodSync(path, 0o755)
  return path
}
const look = async (
  command: string,
  args: readonly string[] = [],
  options: Parameters<typeof runKind>[3] = {},
): Promise<Result> => {
  const [result, ...rest] = await runKind(exec, { command, args }, 'Basic', { exec: { allow: [allowed] }, ...options })
  expect(rest).toEqual([])
  if (!result) throw new Error('it found nothing')
  return result
}
const alive = (pid: number): boolean =>
  existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))

describe('what it says', () => {
  test.each([
    [0, 'ok', undefined],
    [1, 'warning', undefined],
    [2, 'failed', 'threshold'],
    [3, 'failed', 'data'],
    [4, 'failed', 'protocol'],
    [127, 'failed', 'protocol'],
  ])('exit code %i is %s', async (code, status, fault) => {
    const found = await look(program(`echo 'DISK is so | /=3%;80;90'; echo 'and more'; echo 'oh' >&2; exit ${code}`))
    expect(found).toMatchObject({ check: 'result', status, details: ['and more', 'oh'] })
    expect(found.fault).toBe(fault)
    expect(found.message).toContain('DISK is so')
    expect(found.message).not.toContain('80;90')
  })

  test('one that says nothing, or ends by a signal, is told', async () => {
    expect((await look(program('exit 2'))).message).toBe('it said nothing')
    const killed = await look(program('kill -9 $$'))
    expect(killed).toMatchObject({ status: 'failed', fault: 'protocol', message: expect.stringContaining('SIGKILL') })
  })

  test('arguments come as they are: no shell reads them', async () => {
    const found = await look(program('printf "%s," "$@"'), ['$(id)', 'a b', '; rm -rf /', "'", '*'])
    expect(found.message).toContain("$(id),a b,; rm -rf /,',*,")
  })

  test('its environment is a few lines, and none of ours', async () => {
    process.env['SVC_TEST_SECRET'] = 'hunter2-of-exec'
    try {
      const found = await look(program('env'))
      const told = [found.message, ...(found.details ?? [])].join('\n')
      expect(told).toContain('PATH=/usr/bin:/bin')
      expect(told).not.toContain('hunter2')
    } finally {
      delete process.env['SVC_TEST_SECRET']
    }
  })

  test('what it says is hostile: one line, without escapes, and only so much of it', async () => {
    writeFileSync(join(allowed, 'said'), `${escapeSequences}${'y'.repeat(300_000)}\n${'z\n'.repeat(100_000)}`)
    const found = await look(program(`cat ${join(allowed, 'said')}; exit 1`))
    for (const line of [found.message, ...(found.details ?? [])]) {
      expect(line).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/)
      expect(line.length).toBeLessThan(400)
    }
    expect(found.details?.at(-1)).toBe('(it said more than is kept)')
  })
})

describe('what it may cost', () => {
  test('H9 at the deadline it is killed with all that it started', async () => {
    const pids = join(allowed, 'pids')
    const path = program(`sleep 300 & echo $! > ${pids}; echo $$ >> ${pids}; trap '' TERM; wait`)
    const began = performance.now()
    const found = await look(path, [], { timeoutMs: 700 })
    expect(found).toMatchObject({ status: 'failed', fault: 'timeout' })
    expect(performance.now() - began).toBeLessThan(5_000)
    const ids = readFileSync(pids, 'utf8').trim().split('\n').map(Number)
    expect(ids).toHaveLength(2)
    await until(() => !ids.some(alive))
  })

  test('what it leaves running behind it is ended, and does not hold the answer up', async () => {
    const pids = join(allowed, 'pids')
    const began = performance.now()
    const found = await look(program(`sleep 300 & echo $! > ${pids}; echo fine`))
    expect(found).toMatchObject({ status: 'ok', message: expect.stringContaining('fine') })
    expect(performance.now() - began).toBeLessThan(4_000)
    const id = Number(readFileSync(pids, 'utf8'))
    await until(() => !alive(id))
  })

  test('one that does not stop talking is ended before the deadline', async () => {
    const found = await look(program('yes'))
    expect(found).toMatchObject({ status: 'failed', fault: 'data', message: expect.stringContaining('stop talking') })
  })

  test('it has no input to wait for', async () => {
    expect(await look(program('cat; echo read'))).toMatchObject({ status: 'ok' })
  })
})

describe('what may be run', () => {
  const refusal = async (command: string, options: Parameters<typeof runKind>[3] = {}): Promise<string> => {
    const found = await look(command, [], options)
    expect(found).toMatchObject({ status: 'failed', fault: 'data' })
    return found.message
  }

  test("nothing, unless the system's file says so; and it is said why", async () => {
    const path = program(`touch ${join(folder, 'ran')}`)
    expect(await refusal(path, { exec: undefined })).toContain("only the system's svc.yaml can turn it on")
    const off = { allow: [], off: 'there is no /etc/svc/svc.yaml, which alone can allow it' }
    expect(await refusal(path, { exec: off })).toBe(`no program is run here: ${off.off}`)
    expect(existsSync(join(folder, 'ran'))).toBe(false)
  })

  test('only what lies in an allowed folder, however its path is spelt', async () => {
    const other = join(folder, 'plugins-of-mine')
    mkdirSync(other, { mode: 0o755 })
    const outside = program('exit 0', 'check_it', other)
    expect(await refusal(outside)).toContain('is in no folder that')
    expect(await refusal(`${allowed}/../plugins-of-mine/check_it`)).toContain('is in no folder that')
    expect(await refusal('/bin/sh')).toContain('is in no folder that')
    expect(await refusal('check_it')).toContain('is not a whole path')
    expect(await refusal(allowed)).toContain('is in no folder that')
    expect(await refusal(join(allowed, 'none'))).toContain('is not there')
    symlinkSync(outside, join(allowed, 'link'))
    expect(await refusal(join(allowed, 'link'))).toContain(`leads to ${outside}`)
    expect((await look(`${other}/../plugins/${program('echo in').slice(allowed.length + 1)}`)).status).toBe('ok')
  })

  test('nothing that somebody else could have changed', async () => {
    const path = program('exit 0')
    chmodSync(path, 0o775)
    expect(await refusal(path)).toContain('can be changed by others (mode 775)')
    chmodSync(path, 0o755)
    chmodSync(allowed, 0o777)
    expect(await refusal(path)).toContain(`${allowed} can be changed by others`)
    chmodSync(allowed, 0o755)
    const inside = join(allowed, 'more')
    mkdirSync(inside)
    chmodSync(inside, 0o777)
    expect(await refusal(program('exit 0', 'deep', inside))).toContain(`${inside} can be changed by others`)
    if (process.getuid?.() !== 0) return
    chownSync(path, 65_534, 65_534)
    expect(await refusal(path)).toContain('belongs to another account (uid 65534)')
  })

  test('what is no program says so', async () => {
    const path = program('exit 0')
    writeFileSync(path, '#!/nowhere/sh\n')
    expect(await look(path)).toMatchObject({ status: 'failed', fault: 'internal' })
    chmodSync(path, 0o644)
    expect(await look(path)).toMatchObject({ fault: 'internal', message: expect.stringContaining('may not run it') })
    expect(await refusal(join(allowed, '.'))).toMatch(/is not a program|is in no folder/)
  })
})
