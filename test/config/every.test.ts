import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import { loadConfig, loadScheduleLoad } from '../../src/core/config/index.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

async function load(yaml: string) {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'svc.yaml'), yaml, { mode: 0o600 })
  return await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder })
}

/** The line and the rest of the message about a mistake. */
async function mistake(yaml: string): Promise<string> {
  const fault = await load(yaml).then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(fault instanceof Fault)) throw new Error(`no mistake in ${yaml}`)
  return fault.message.replace(/^.*svc\.yaml:/, '')
}

test('W1 a svc.yaml without `every:` has the usual intervals', async () => {
  const { serve } = await load('types: {App: [{kind: tcp, host: localhost, port: 9}]}\n')
  expect(serve.every).toEqual({ Standard: 60_000, Advanced: 3_600_000 })
})

test('W1 `every:` is a duration for Standard, a map of modes, or off', async () => {
  const monitor = 'kind: tcp, host: localhost, port: 9'
  const { serve, types } = await load(`serve: {every: 2m}
types:
  App:
    - {${monitor}, name: a, every: {Basic: 10s, Standard: off}}
    - {${monitor}, name: b, every: off}
    - {${monitor}, name: c, timeout: 2s, every: 5s}
`)
  expect(serve.every).toEqual({ Standard: 120_000 })
  expect(types.App?.monitors.map(({ every }) => every)).toEqual([
    { Basic: 10_000, Standard: 'off' },
    'off',
    { Standard: 5_000 },
  ])
  expect((await load('serve: {every: off}\n')).serve.every).toBe('off')
  expect((await load('serve: {every: false}\n')).serve.every).toBe('off')
})

test('W1 a mistake in `every:` names its line, the setting and what to write', async () => {
  expect(await mistake('serve:\n  every: 5s\n')).toBe('2:3: serve.every is less than 10s: give 10s or more, or off')
  expect(await mistake('serve:\n  every: {Advanced: 20s}\n')).toMatch(/^2:\d+: serve\.every\.Advanced is less than 30s/)
  expect(await mistake('serve:\n  every: 60\n')).toBe('2:3: serve.every is 60, without a unit: write 60s or 60ms')
  expect(await mistake('serve:\n  every: {Standart: 1m}\n')).toContain('did you mean `Standard`?')
  expect(await mistake('serve:\n  every: [1m]\n')).toContain(
    'must be a duration, off, or a map such as {Standard: 1m, Advanced: 1h}, not a list',
  )
  const monitor = 'types:\n  App:\n    - {kind: tcp, host: localhost, port: 9'
  expect(await mistake(`${monitor}, every: 2s}\n`)).toMatch(/^3:\d+: types\.App\[0\]\.every is less than 5s/)
  expect(await mistake(`${monitor}, every: 5s}\n`)).toMatch(
    /types\.App\[0\]\.every Standard is every 5s, and a run may take 10s: give 10s or more, or add `timeout: 5s`$/,
  )
  expect(await mistake(`${monitor}, timeout: 1m, every: {Basic: 30s}}\n`)).toMatch(/or give a shorter `timeout:`$/)
})

test('W1 a type in its map form has its own intervals', async () => {
  const { types } = await load(
    'types: {App: {every: 30s, monitors: [{kind: tcp, host: localhost, port: 9}]}, Sql: [{kind: tcp, host: localhost, port: 9}]}\n',
  )
  expect(types.App?.every).toEqual({ Standard: 30_000 })
  expect(types.Sql?.every).toBeUndefined()
  expect(await mistake('types:\n  App:\n    every: 9s\n    monitors: []\n')).toMatch(
    /^3:\d+: types\.App\.every is less than 10s/,
  )
})

test('W1 more runs a minute than one process was measured to carry are a warning with both figures', async () => {
  const { scheduleWarnings } = await loadScheduleLoad()
  const yaml = (count: number): string =>
    `serve: {every: 10s}\ntypes:\n  App:\n${Array.from({ length: count }, (_, at) => `    - {kind: tcp, name: m${at}, host: localhost, port: 9}\n`).join('')}`
  const few = await load(yaml(10))
  expect(scheduleWarnings(few.types, few.serve)).toEqual([])
  const many = await load(yaml(1_700))
  expect(scheduleWarnings(many.types, many.serve)).toEqual([
    expect.stringContaining('the schedule has 10,200 runs a minute, and one svc serve was measured to carry 10,000'),
  ])
})
