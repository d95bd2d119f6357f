import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { ask, startNode } from '../support/program/serve-node.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

const callersOfType = 8
const callerPauseMs = 25
const scheduledMonitors = 12
const everyMs = 5_000
/** How often each monitor of the schedule runs before the test ends. */
const runs = 3

/** A peer that counts its connections. */
async function peer(): Promise<{ readonly port: number; readonly count: () => number }> {
  let count = 0
  const server = createServer((socket) => {
    count += 1
    socket.on('error', () => {}).end()
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  return { port: (server.address() as { readonly port: number }).port, count: () => count }
}

test('W9 under load of callers and of the schedule, reloads lose no answer and keep the times of the schedule, and a bad file is refused with its line', async () => {
  const folder = temporaryFolder()
  const { port } = await peer()
  const tcp = (name: string, at = port, more = ''): string =>
    `{kind: tcp, name: ${name}, host: 127.0.0.1, port: ${at}, timeout: 5s${more}}`
  const scheduled = await Promise.all(Array.from({ length: scheduledMonitors }, peer))
  /** Sql and Batch never change. Only Batch runs by itself. */
  const yamlOf = (...entries: readonly string[]): string => `types:
  Sql: {every: off, host: false, monitors: [${tcp('base')}]}
  Batch: {host: false, monitors: [${scheduled.map((one, at) => tcp(`m${at}`, one.port, `, every: ${everyMs / 1_000}s`)).join(', ')}]}
  App:
    every: off
    host: false
    monitors:
${entries.map((entry) => `      - ${entry}\n`).join('')}`
  const began = performance.now()
  await using node = await startNode({ store: join(folder, 'store', 'svc.db'), yaml: yamlOf(tcp('base')) })
  let isDone = false
  const statuses: number[] = []
  const complete = { App: 0, Sql: 0 }
  const lacking: string[] = []
  const caller = async (type: 'App' | 'Sql'): Promise<void> => {
    while (!isDone) {
      const answer = await ask(`${node.url}/healthcheck?ServerType=${type}&ExecutionMode=Basic&SuppressErrorCodes=true`)
      statuses.push(answer.status)
      if (answer.body.includes('tcp base')) complete[type] += 1
      else lacking.push(answer.body)
      // Each answer is a line of the log, and lines that nobody reads in time are dropped.
      await pause(callerPauseMs)
    }
  }
  const callers = (['App', 'Sql'] as const).flatMap((type) => Array.from({ length: callersOfType }, () => caller(type)))
  const outcomes = (what: string): number => node.log().split(what).length - 1
  const reload = async (yaml: string, what: string): Promise<void> => {
    const before = outcomes(what)
    writeFileSync(node.config, yaml)
    node.signal('SIGHUP')
    await until(() => outcomes(what) > before, 60_000)
  }
  try {
    for (let round = 1; scheduled.some(({ count }) => count() < runs); round += 1) {
      const before = { ...complete }
      await reload(yamlOf(tcp('base'), tcp(`extra-${round}`)), '"reloaded: 1 added, ')
      await until(() => complete.App > before.App && complete.Sql > before.Sql, 60_000)
      // A monitor that began anew at each reload would run too often, or never.
      expect(round).toBeLessThan(2_000)
    }
    const most = (performance.now() - began) / everyMs + 2
    expect(Math.max(...scheduled.map(({ count }) => count()))).toBeLessThanOrEqual(most)
    // The line of the mistake is that of the first entry of App.
    await reload(yamlOf(`{kind: tcp, host: x, prot: 1}`), 'not reloaded')
    expect(node.log()).toMatch(/not reloaded[^\n]*svc\.yaml:8:/)
    expect((await ask(`${node.url}/metrics`)).body).toMatch(/^svc_config_last_reload_successful 0$/m)
    const before = complete.App
    await until(() => complete.App > before, 60_000)
  } finally {
    isDone = true
    await Promise.allSettled(callers)
  }
  await Promise.all(callers)
  expect(new Set(statuses)).toEqual(new Set([200]))
  expect(lacking).toEqual([])
}, 240_000)
