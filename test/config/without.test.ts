import { expect, test } from 'vitest'
import type { AnyKind } from '../../src/core/checks/engine/index.ts'
import { monitors as kinds } from '../../src/core/checks/kinds/index.ts'
import { describePlan } from '../../src/core/checks/plan/index.ts'
import { load, problemsOf, refused } from './given.ts'

const entry = (more: string): string => `types:\n  Batch:\n    - {kind: redis, url: redis://cache.internal, ${more}}\n`

test('H58 a monitor leaves out checks by their names, and lists do not show them', async () => {
  const [monitor] = (await load(entry('without: [clients, memory]'))).types.Batch?.monitors ?? []
  expect(monitor?.without).toEqual(['clients', 'memory'])
  const names = describePlan(monitor ? [monitor] : [], 'Advanced').flatMap(({ Checks }) =>
    Checks.map(({ Name }) => Name),
  )
  expect(names).toContain('rejected')
  expect(names).not.toContain('clients')
  expect((await load(entry('name: plain'))).types.Batch?.monitors[0]?.without).toBeUndefined()
})

test.each([
  [
    'without: [clientes]',
    /names "clientes", which is not a known check of redis that can be left out: did you mean `clients`\?/,
  ],
  ['without: [connect]', /names "connect", which proves that the server answers or accepts the sign-in: remove it/],
  ['without: [ping]', /names "ping", which proves that the server answers or accepts the sign-in: remove it/],
  ['without: [last save], lastSave: 1d', /leaves out "last save", which `lastSave:` demands: remove one/],
])('H58 %s is a mistake', async (more, message) => {
  expect(problemsOf(await refused(entry(more))).join('\n')).toMatch(message)
})

test('H58 what proves a sign-in later than the connection cannot be left out', async () => {
  const settings = 'host: a.internal, username: monitor, password: {env: WORD}'
  const ftp = (name: string) => `types:\n  Ftp:\n    - {kind: ftp, ${settings}, without: [${name}]}\n`
  expect(problemsOf(await refused(ftp('sign-in'))).join()).toMatch(
    /names "sign-in", which proves the sign-in: remove it/,
  )
  const renaming = ftp('rename').replace('without', 'folder: /in, allowWrites: true, without')
  expect((await load(renaming, { WORD: 'x' })).types.Ftp?.monitors[0]?.without).toEqual(['rename'])
  expect((await load(ftp('PASV'), { WORD: 'x' })).types.Ftp?.monitors[0]?.without).toEqual(['PASV'])
})

test('H58 no kind lets what its connection or its first answer proves be left out', async () => {
  const firsts = [
    'connect',
    'handshake',
    'management',
    'discovery',
    'banner',
    'hello',
    'ping',
    'query',
    'answer',
    'samples',
  ]
  const all = await Promise.all(Object.values(kinds).map(async ({ load: kind }) => (await kind()).default as AnyKind))
  const loose = all.flatMap(({ name, checks }) =>
    checks.filter((one) => one.canBeLeftOut && firsts.includes(one.name)).map((one) => `${name} ${one.name}`),
  )
  expect(loose).toEqual([])
})
