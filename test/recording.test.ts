import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const tool = fileURLToPath(new URL('../tools/recording/recording.ts', import.meta.url))

describe('two recordings of monitor runs', () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-recording-'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  const run = async (...args: readonly string[]): Promise<string> =>
    (await promisify(execFile)(process.execPath, [tool, ...args])).stdout
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(folder, name), text)
    return join(folder, name)
  }
  const recording = (name: string, ...results: readonly object[]): Promise<string> =>
    file(name, `${JSON.stringify({ kind: 'tcp', mode: 'Basic', settings: { port: 40_000 }, results, test: name })}\n`)
  const queue = (waiting: number, port = 40_000) => ({
    check: 'queue',
    level: 'warn',
    message: `127.0.0.1:${port}: ${waiting} jobs wait (warn 5)`,
    observed: waiting,
    limit: 5,
  })
  const summary = (text: string): string => text.split('\n', 1)[0] ?? ''
  const same = 'tcp: 1 runs before, 1 after; 0 only before, 0 only after'
  const different = 'tcp: 1 runs before, 1 after; 1 only before, 1 only after'

  test('agree where only a port differs', async () => {
    const files = [await recording('a', queue(7, 41_000)), await recording('b', queue(7, 52_000))]
    expect(summary(await run('compare', ...files))).toBe(same)
  })

  test('differ in a value', async () => {
    const text = await run('compare', await recording('a', queue(7)), await recording('b', queue(8)))
    expect(summary(text)).toBe(different)
    expect(text).toContain('- ! {"check":"queue","status":"warning","message":"127.0.0.1:<port>: 7 jobs wait')
  })

  test('agree in a value that differs between recordings of the same code, and still differ in a limit', async () => {
    const merged = await run('merge', await recording('a', queue(7)), await recording('b', queue(8)))
    const before = await file('before', merged)
    expect(summary(await run('compare', before, await recording('c', queue(9))))).toBe(same)
    const moved = { ...queue(9), message: '127.0.0.1:40000: 9 jobs wait (warn 6)' }
    expect(summary(await run('compare', before, await recording('d', moved)))).toBe(different)
  })

  test('differ in a status, and in the order of checks', async () => {
    const connect = { check: 'connect', level: 'ok', message: 'accepted' }
    const before = await recording('a', connect, queue(7))
    expect(summary(await run('compare', before, await recording('b', queue(7), connect)))).toBe(different)
    expect(summary(await run('compare', before, await recording('c', connect, { ...queue(7), level: 'fail' })))).toBe(
      different,
    )
  })

  test('agree where a finding with a level has become a result with a status and a measurement', async () => {
    const { level: _, observed, limit, ...rest } = queue(7)
    const result = { ...rest, status: 'warning', measurement: { value: observed, warn: limit } }
    const files = [await recording('a', queue(7)), await recording('b', result)]
    expect(summary(await run('compare', ...files))).toBe(same)
  })
})
