import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../../../src/core/config/index.ts'
import { scheduledMonitors } from '../../../src/core/service/watch/scheduled-monitors.ts'
import { watchedMonitors } from '../../../src/core/service/watch/states.ts'
import { machineKey } from '../../../src/core/watch/nodes/index.ts'

test('W4 monitors of a machine belong to its node, under their former names too, and those of the network to none', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-watched-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const yaml = `types:
  App:
    host: false
    monitors:
      - {kind: process, name: web, match: node, formerly: [App/process/old]}
      - {kind: tcp, name: shop, host: 127.0.0.1, port: 9, formerly: [App/tcp/store]}
`
  writeFileSync(join(folder, 'svc.yaml'), yaml, { mode: 0o600 })
  const config = await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder })
  const keys = async (keyOf?: (key: string) => string) =>
    watchedMonitors(await scheduledMonitors(config, keyOf), config).map(({ key, formerly }) => [key, ...formerly])
  expect(await keys()).toEqual([
    ['App/process/web', 'App/process/old'],
    ['App/tcp/shop', 'App/tcp/store'],
  ])
  expect(await keys((key) => machineKey('node-a', key))).toEqual([
    ['@node-a/App/process/web', '@node-a/App/process/old'],
    ['App/tcp/shop', 'App/tcp/store'],
  ])
})
