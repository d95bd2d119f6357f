import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { temporaryHome } from '../support/program/temporary-home.ts'

const tcp = (name: string, more = ''): string => `{kind: tcp, name: ${name}, host: 127.0.0.1, port: 1${more}}`
const home = temporaryHome()
beforeAll(() => {
  const yaml = `types:
  Sql:
    - ${tcp('orders', ', tags: [network]')}
    - ${tcp('replica', ', tags: [network]')}
  App:
    - ${tcp('shop', ', dependsOn: Sql/orders')}
    - ${tcp('cart', ', dependsOn: shop')}
    - ${tcp('reports', ', dependsOn: {any: [Sql/orders, Sql/replica]}')}
    - ${tcp('orders')}
`
  writeFileSync(join(home.folder, 'svc.yaml'), yaml, { mode: 0o600 })
})

const impact = async (...args: readonly string[]) => await home.run(['impact', ...args])

test('G4 svc impact lists what would not run, and which groups hold, and ends with 0', async () => {
  const { code, stdout } = await home.run(['impact', 'Sql/orders'], { columns: 100 })
  expect(code).toBe(0)
  expect(stdout).toContain('without Sql/orders, 2 monitors do not run, and 1 still runs')
  expect(stdout).toMatch(/tcp shop +not run +Sql\/tcp orders/)
  expect(stdout).toMatch(/tcp cart +not run +tcp shop/)
  expect(stdout).toMatch(/tcp reports +runs +Sql\/tcp orders \(1 of 2 left, needs 1\)/)
  expect(stdout).not.toContain('STATE')
})

test('G4 svc impact --json has the causes, each dependent and its group', async () => {
  const { code, stdout } = await impact('tag:network', '--json')
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({
    of: 'tag:network',
    causes: ['Sql/tcp orders', 'Sql/tcp replica'],
    dependents: [
      { monitor: 'tcp shop', runs: false, direct: true, through: ['Sql/tcp orders'], state: null },
      { monitor: 'tcp cart', runs: false, direct: false, through: ['tcp shop'] },
      { monitor: 'tcp reports', runs: false, direct: true, members: 2, left: 0, needed: 1 },
    ],
  })
})

test('G4 a monitor on which nothing depends says so and ends with 0', async () => {
  const { code, stdout } = await home.run(['impact', 'cart'], { columns: 100 })
  expect([code, stdout.includes('No monitor depends on it')]).toEqual([0, true])
})

test('G4 an unknown and an ambiguous name are refused with the way out', async () => {
  const unknown = await impact('ordes')
  expect(unknown.code).toBe(9)
  expect(unknown.stderr).toContain('No monitor is called "ordes"')
  const ambiguous = await impact('orders')
  expect(ambiguous.code).toBe(9)
  expect(ambiguous.stderr).toContain('"orders" names several monitors: App/tcp orders, Sql/tcp orders')
  expect((await impact('tag:netwrok')).stderr).toContain('did you mean "tag:network"?')
})
