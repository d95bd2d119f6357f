import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { cheapHash } from '../../support/suite/cheap-hash.ts'
import { openFixture } from './fixture.ts'

const cwd = new URL('../../..', import.meta.url).pathname
const sources = globSync('{src,bin}/**/*.{ts,js}', { cwd })
const linesWith = (pattern: RegExp): readonly string[] =>
  sources.flatMap((file) =>
    readFileSync(`${cwd}${file}`, 'utf8')
      .split('\n')
      .flatMap((line) => (pattern.test(line) ? [`${file}: ${line.trim()}`] : [])),
  )

test('P1 no variable, flag or setting changes what a hash costs: only the composition does, and svc gives it no cost', () => {
  const places = new Set(linesWith(/\b(?:hashCost|HashCost)\b/).map((line) => line.replace(/: .*/s, '')))
  expect([...places].sort()).toEqual([
    'src/core/accounts/auth/index.ts',
    'src/core/accounts/auth/passwords.ts',
    'src/core/service/accounts/accounts.ts',
    'src/core/service/part.ts',
  ])
  expect(linesWith(/\bpasswordsOfProcess\(/)).toEqual([
    'src/core/service/accounts/accounts.ts: return { ...auth, passwords: auth.passwordsOfProcess(hashCost, apart), paces: new auth.Paces() }',
  ])
  expect(
    linesWith(/\bhashCost\b/)
      .filter((line) => line.startsWith('src/core/service/'))
      .sort(),
  ).toEqual([
    'src/core/service/accounts/accounts.ts: const apart = shared && hashCost === undefined',
    'src/core/service/accounts/accounts.ts: return { ...auth, passwords: auth.passwordsOfProcess(hashCost, apart), paces: new auth.Paces() }',
    'src/core/service/accounts/accounts.ts: { config: { serve, auth: ways }, hashCost, shared }: OpenOptions,',
    'src/core/service/part.ts: readonly hashCost?: HashCost | undefined',
  ])
  // The queue counts the threads of this process; nothing else of the environment reaches the hash.
  expect(linesWith(/process\.env/).filter((line) => line.startsWith('src/core/accounts/auth/'))).toEqual([
    'src/core/accounts/auth/passwords.ts: constructor(slots = defaultSlots(process.env.UV_THREADPOOL_SIZE), patienceMs = 2_000) {',
  ])
})

test('tests that sign in use a cheap hash', async () => {
  const { data } = await openFixture()
  const { memory, passes, parallelism } = cheapHash
  expect((await data.users.find('Ann'))?.passwordHash).toContain(`$m=${memory},t=${passes},p=${parallelism}$`)
})
