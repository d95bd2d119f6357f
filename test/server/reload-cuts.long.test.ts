import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { reloader } from '../../src/cli/serve/reload.ts'
import { loadConfig, loadRestartSettings } from '../../src/core/config/index.ts'
import { testCore, testServer } from '../support/engine/core.ts'
import { refusedPort } from '../support/faults/faults.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { farMs, until } from '../support/suite/until.ts'

/** A svc.yaml in which one monitor of many fails. It uses what a file of some size has. */
const yamlWith = (port: number): string => `# Monitors of the shop
serve:
  confirm: 5s
  every:
    Standard: 10s
    Advanced: off
profiles:
  pair:
    monitors:
      - kind: tcp
        name: first
        host: 127.0.0.1
        port: 9
types:
  App:
    host: false
    monitors:
      - kind: tcp
        name: down
        host: 127.0.0.1
        port: ${port}
        timeout: 3s
      - profile: pair
        name: two
${Array.from({ length: 9 }, (_, at) => `      - kind: tcp\n        name: m${at}\n        host: 127.0.0.1\n        port: 9\n`).join('')}  Sql:
    host: false
    every: off
    monitors:
      - kind: tcp
        name: last
        host: 127.0.0.1
        port: 9
silences:
  - monitors: ["App/tcp m1"]
    when: "0 3 * * *"
    for: 10m
    reason: backup
notify:
  - name: chat
    kind: webhook
    url: http://127.0.0.1:9/
    remind: 4h
  - name: oncall
    kind: webhook
    url: http://127.0.0.1:9/
    only:
      types: [App]
`

test('W9 a svc.yaml that is cut at any line while an incident is open ends nothing and loses no receiver, and the whole file is put into force again', {
  timeout: farMs,
}, async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'svc.yaml')
  const whole = yamlWith(await refusedPort())
  const load = async (text: string, more = {}) => {
    writeFileSync(file, text, { mode: 0o600 })
    return await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder, ...more })
  }
  const lines: string[] = []
  const log = ({ msg }: { readonly msg: string }): void => void lines.push(msg)
  const core = await testCore({ config: await load(whole), details: 'anyone', log })
  const server = await testServer({ service: core.service, runtime: core.runtime })
  onTestFinished(async () => {
    await server.stop()
    await core.runtime.close()
  })
  core.runtime.answersAt?.(server.url, undefined)
  const open = async (): Promise<readonly number[]> => {
    const incidents = await core.runtime.incidents?.(() => 'full')
    return (incidents?.open ?? []).flatMap(({ monitor, faults }) =>
      monitor === 'tcp down'
        ? faults.flatMap(({ since, certainty }) => (certainty === 'confirmed' ? [since] : []))
        : [],
    )
  }
  const [beganAt] = await until(async () => {
    const [one] = await open()
    return one !== undefined && [one]
  }, farMs)
  const { reload } = core
  if (!reload) throw new Error('svc serve reloads')
  let text = whole
  const { offer } = reloader({
    restartSettings: await loadRestartSettings(),
    inForce: () => {},
    load: async (includes) => await load(text, { reload: includes }),
    certificate: async () => undefined,
    reload,
    watcher: { isSettled: () => true, inForce: () => {}, waits: () => {} },
    server,
    log,
    facts: core.runtime.facts,
    report: () => {},
  })
  const outcomes = { 'reloaded: ': 0, 'and waits': 0 }
  const cuts = [...whole.matchAll(/\n/g)].map(({ index }) => index + 1)
  for (const cut of [0, ...cuts]) {
    text = whole.slice(0, cut)
    await offer()
    const [line = ''] = lines.slice(-1)
    expect(await open(), `${text}\n${line}`).toEqual([beganAt])
    if (line.includes('and waits')) {
      outcomes['and waits'] += 1
      continue
    }
    expect(line).toMatch(/^reloaded: /)
    outcomes['reloaded: '] += 1
    // The next cut is one of the whole file again.
    text = whole
    await offer()
    expect(lines.at(-1)).toMatch(/^reloaded: /)
  }
  expect(lines.filter((line) => /\b(?:ended|removed after|recovered)\b/.test(line))).toEqual([])
  expect(outcomes['and waits']).toBeGreaterThan(cuts.length / 2)
  expect(outcomes['reloaded: ']).toBeGreaterThan(0)
  expect(outcomes['and waits'] + outcomes['reloaded: ']).toBe(cuts.length + 1)
})
