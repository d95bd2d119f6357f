import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryHome } from '../../support/program/temporary-home.ts'
import { freePort } from '../../support/servers/server.ts'
import { always } from './always.ts'

test('M7 a gate fails during a silence as it does without', async () => {
  const home = temporaryHome()
  const monitors = `types: {App: {host: false, monitors: [{kind: tcp, name: shop, host: 127.0.0.1, port: ${await freePort()}}]}}\n`
  const exits: (number | null)[] = []
  for (const more of ['', `silences:\n${always('App/*')}`]) {
    writeFileSync(join(home.folder, 'svc.yaml'), monitors + more, { mode: 0o600 })
    exits.push((await home.svc(['health', '--type', 'App'])).code)
  }
  expect(exits).toEqual([3, 3])
})
