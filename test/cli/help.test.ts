import { afterAll, beforeAll, expect, test } from 'vitest'
import { commands } from '../../src/registry.ts'
import { type Home, svcHome } from '../support/svc.ts'

let home: Home
beforeAll(() => {
  home = svcHome()
})
afterAll(() => home.remove())

test.each(Object.keys(commands).map((id) => id.replaceAll(':', ' ')))('svc %s --help shows its usage', async (name) => {
  const { code, stdout, stderr } = await home.svc([...name.split(' '), '--help'])
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toContain(`$ svc ${name}`)
})
