import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { reports } from '../../src/core/checks/reports/index.ts'
import { loadConfig } from '../../src/core/config/index.ts'
import { refusedPort } from '../support/faults/faults.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { type Accounts, bearer, by, startAccounts } from './accounts.ts'
import { ask } from './site.ts'

/** As a proxy relays a caller of another machine. */
const far = { 'x-forwarded-for': '203.0.113.9' }
const home = temporaryHome()
let site: Accounts
let markers: readonly string[]
/** Keys of a caller for App alone, and of one who reads every type. */
let ofApp: string
let ofAll: string
beforeAll(async () => {
  const port = await refusedPort()
  markers = ['marker-name', '127.45.67.89', `:${port}`, 'Sql/']
  const file = `${home.folder}/svc.yaml`
  const yaml = `types:
  Sql:
    - {kind: tcp, name: marker-name, host: 127.45.67.89, port: ${port}}
  App:
    - {kind: file-age, name: web, path: /etc/hostname, dependsOn: Sql/marker-name}
    - {kind: file-age, name: shop, path: /etc/hostname, dependsOn: web}
    - {kind: file-age, name: unclear, path: /etc/hostname, dependsOn: Sql/marker-nam}
    - {kind: file-age, name: untyped, path: /etc/hostname, dependsOn: marker-name}
  Ftp:
    - {kind: file-age, name: web, path: /etc/hostname, dependsOn: Batch/marker-name}
  Batch:
    - {kind: tcp, name: marker-name, host: 127.45.67.89, port: ${port}, dependsOn: Ftp/web}
`
  writeFileSync(file, yaml, { mode: 0o600 })
  const config = await loadConfig({
    env: {},
    platform: process.platform,
    home: home.folder,
    path: file,
    tolerant: 'entries',
  })
  site = await startAccounts({}, undefined, undefined, config.types)
  for (const [userName, permissions] of [
    ['application', ['health:App', 'health:Ftp']],
    ['everything', ['health']],
  ] as const)
    await site.admin.users.add({ userName, password: 'violet-harbour-42', permissions: [...permissions] }, by)
  ofApp = (await site.admin.keys.create({ name: 'app', userName: 'application' }, by)).secret
  ofAll = (await site.admin.keys.create({ name: 'all', userName: 'everything' }, by)).secret
})
afterAll(() => site.close())

const formats = ['json', 'xml', 'csv', 'jsv', 'html', ...Object.keys(reports)]
const types = ['App', 'Ftp'] as const
async function answers(key: string, type: string): Promise<ReadonlyMap<string, string>> {
  const path = `/healthcheck?ExecutionMode=Basic&ServerType=${type}`
  const read = async (at: string, headers: Readonly<Record<string, string>> = {}): Promise<string> =>
    (await ask(site.port, at, { headers: { ...far, ...bearer(key), ...headers } })).text
  const all = new Map<string, string>()
  for (const format of formats) all.set(format, await read(`${path}&format=${format}`))
  for (const accept of ['application/vnd.svc.run+json;version=1', 'application/health+json', 'text/html'])
    all.set(accept, await read(path, { accept }))
  all.set('/metrics', await read('/metrics'))
  all.set('the status page', await read('/', { accept: 'text/html' }))
  return all
}

describe('H23 S11 a caller who may read App, and not Sql on which it depends', () => {
  test.each(types)('H23 reads nothing of the other type in any format of %s, nor a metric of it', async (type) => {
    for (const [format, text] of await answers(ofApp, type)) {
      for (const marker of markers) expect([format, marker, text.includes(marker)]).toEqual([format, marker, false])
    }
  })

  test('H23 reads "a monitor of another type" in each format that has messages, and as the cause in metrics', async () => {
    const all = await answers(ofApp, 'App')
    const withMessages = [...all].flatMap(([format, text]) =>
      text.includes('a monitor of another type') ? [format] : [],
    )
    expect(withMessages).toEqual(
      expect.arrayContaining(['json', 'xml', 'csv', 'jsv', 'nagios', 'prtg', 'application/health+json', '/metrics']),
    )
    const metrics = all.get('/metrics') ?? ''
    expect(metrics).toMatch(/^svc_check_skipped\{[^}]*monitor="file-age web"[^}]*cause="a monitor of another type"/m)
    expect(metrics).toMatch(/^svc_check_skipped\{[^}]*monitor="file-age shop"[^}]*cause="file-age web"/m)
  })

  test('H23 a caller who may read both types reads its name everywhere, and the other document is not changed', async () => {
    const all = await answers(ofAll, 'App')
    expect(all.get('json')).toContain('not run: Sql/tcp marker-name failed')
    expect(all.get('/metrics')).toMatch(/monitor="file-age web"[^}]*cause="Sql\/tcp marker-name"/)
    expect((await answers(ofApp, 'App')).get('json')).toContain('not run: a monitor of another type failed')
    expect((await answers(ofAll, 'Sql')).get('json')).toContain('127.45.67.89')
  })

  test('H23 the log of the server names no monitor of another type for such a caller', async () => {
    const from = site.log.length
    await answers(ofApp, 'App')
    const lines = JSON.stringify(site.log.slice(from))
    expect(lines).toContain('/healthcheck')
    for (const marker of markers) expect(lines).not.toContain(marker)
  })
})
