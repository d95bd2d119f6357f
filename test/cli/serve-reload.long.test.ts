import { rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { documentOf } from '../support/program/documents.ts'
import { type ServeNode, startNode } from '../support/program/serve-node.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'

const home = temporaryHome()
let node: ServeNode
const off = 'serve: {every: off}\n'
const tcp = (name: string, more = ''): string => `{kind: tcp, name: ${name}, host: 127.0.0.1, port: 9${more}}`
const put = (yaml: string): void => writeFileSync(node.config, yaml, { mode: 0o600 })
const reload = (...flags: readonly string[]) => home.run(['serve', 'reload', ...flags])

beforeAll(async () => {
  node = await startNode({
    store: join(home.folder, 'store', 'svc.db'),
    env: { HOME: home.folder },
    yaml: `${off}types: {App: [${tcp('one')}, ${tcp('two')}]}\n`,
  })
}, 60_000)
afterAll(async () => {
  await node.stop()
}, 60_000)

test('W9 svc serve reload says what it added, removed and changed, in words and as a document', async () => {
  put(`${off}types: {App: [${tcp('one', ', timeout: 3s')}, ${tcp('three')}], Sql: [${tcp('four')}]}\n`)
  const { code, stdout } = await reload('--json')
  expect(code).toBe(0)
  const { servers } = documentOf('serve reload', stdout) as { readonly servers: readonly object[] }
  expect(servers).toMatchObject([
    {
      pid: node.pid,
      url: expect.stringContaining(`:${node.port}`),
      configuration: node.config,
      added: ['App/tcp three', 'Sql/tcp four'],
      removed: ['App/tcp two'],
      changed: ['App/tcp one'],
      warnings: [],
    },
  ])
  const again = await home.run(['serve', 'reload'], { columns: 200 })
  expect(again.stdout).toMatch(/has reloaded \S+svc\.yaml: 0 added, 0 removed, 0 changed/)
}, 60_000)

test('W9 svc serve reload refuses a svc.yaml with a mistake as svc monitors validate does, with exit code 12', async () => {
  put(`${off}types:\n  App:\n    - {kind: tcp, host: x, port: 1, hots: x}\n`)
  const { code, stderr } = await reload('--config', node.config)
  expect(code).toBe(12)
  const validated = await home.run(['monitors', 'validate', '--config', node.config])
  const [mistake = ''] = validated.stderr.split('\n')
  expect(mistake).toContain('svc.yaml:4:')
  expect(stderr).toContain(mistake)
  expect(stderr).toContain('keeps the previous configuration')
  documentOf('error', (await reload('--json')).stdout)
}, 60_000)

test('W21 svc serve reload reads the files that svc.yaml includes, and refuses one with its line', async () => {
  put(`${off}include: [part-*.yaml]\ntypes: {App: [${tcp('one')}]}\n`)
  const part = join(dirname(node.config), 'part-1.yaml')
  writeFileSync(part, `types:\n  Sql:\n    - ${tcp('part')}\n`, { mode: 0o600 })
  expect((await reload()).stdout).toContain('Sql/tcp part')
  writeFileSync(part, `types:\n  Sql:\n    - ${tcp('part', ', prot: 1')}\n`)
  const refused = await reload()
  expect(refused.code).toBe(12)
  expect(refused.stderr).toContain(`Error: ${part}:3:`)
  rmSync(part)
  const emptied = await reload()
  expect(emptied.code).toBe(12)
  expect(emptied.stderr).toContain('matches no file any more: part-*.yaml')
  expect(emptied.stderr).toContain('keeps the previous configuration')
  const intended = await reload('--empty-include')
  expect([intended.code, intended.stdout]).toEqual([0, expect.stringContaining('Sql/tcp part')])
  expect((await reload()).stderr).toContain('matches no file: part-*.yaml')
}, 60_000)

test('W9 svc serve reload refuses by name what needs a restart, and passes warnings on', async () => {
  put('serve: {every: off, jsonp: true}\n')
  const refused = await reload()
  expect(refused.code).toBe(12)
  expect(refused.stderr).toContain('serve.jsonp has changed, which needs a restart')
  put(`${off}types: {App: []}\n`)
  const warned = await reload()
  expect(warned.code).toBe(0)
  expect(warned.stderr).toContain('App is not configured')
}, 60_000)

test('W9 many svc serve reload at once all get the outcome of a reload that began after them', async () => {
  put(`${off}types: {App: [${tcp('one')}]}\n`)
  const all = await Promise.all(Array.from({ length: 8 }, () => reload('--pid', String(node.pid))))
  expect(all.map(({ code }) => code)).toEqual(all.map(() => 0))
}, 60_000)
