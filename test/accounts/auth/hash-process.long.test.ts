import { readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { hashProcess } from '../../../src/core/accounts/auth/hash-process.ts'
import { HashQueue, hashCost, type Passwords, passwords, readPhc } from '../../../src/core/accounts/auth/passwords.ts'
import { signIn, startNode } from '../../support/program/serve-node.ts'
import { ownChildren } from '../../support/suite/processes.ts'
import { temporaryFolder } from '../../support/suite/temporary-folder.ts'
import { until } from '../../support/suite/until.ts'
import { faultOf } from './fixture.ts'

const never = new AbortController().signal
/** Passwords that such a process hashes, which ends with the test. */
function passwordsApart(entry?: URL): Passwords {
  const made = passwords(new HashQueue(2), hashCost, hashProcess(2, entry))
  onTestFinished(() => made.close())
  return made
}
const stub = new URL('../../support/engine/silent-reader-child.ts', import.meta.url)

test('P3 one process makes the hashes of several callers, and they match those of this process', async () => {
  const apart = passwordsApart()
  const here = passwords(new HashQueue(2))
  const [first, second] = await Promise.all([
    apart.hash('violet-harbour-42', never),
    apart.hash('紫の港と火曜日', never),
  ])
  expect(ownChildren()).toHaveLength(1)
  expect(readPhc(first)).toMatchObject(hashCost)
  expect((await here.check('violet-harbour-42', first)).right).toBe(true)
  expect((await here.check('violet-harbour-43', first)).right).toBe(false)
  expect((await here.check('紫の港と火曜日', second)).right).toBe(true)
  expect((await apart.check('violet-harbour-42', await here.hash('violet-harbour-42', never))).right).toBe(true)
  apart.close()
  await until(() => ownChildren().length === 0)
})

test('P3 simulated: the callers of a process that is killed get 503, and later ones another process', async () => {
  const apart = passwordsApart(stub)
  for (let tries = 0; tries < 2; tries += 1) {
    const fault = await faultOf(apart.hash('violet-harbour-42', never))
    expect([fault.fault, fault.details.retryAfter]).toEqual(['Unavailable', 1])
  }
})

test('P3 where the process cannot be started, this one makes the hashes', async () => {
  const apart = passwordsApart(new URL('file:///no/such/hash.ts'))
  const stored = await apart.hash('violet-harbour-42', never)
  expect((await apart.check('violet-harbour-42', stored)).right).toBe(true)
})

test.skipIf(process.platform !== 'linux')(
  'P3 svc serve hashes in a process of lower priority, and starts another when somebody kills it',
  async () => {
    await using node = await startNode({ store: join(temporaryFolder(), 'svc.db') })
    const hashing = (): readonly number[] =>
      readFileSync(`/proc/${node.pid}/task/${node.pid}/children`, 'utf8')
        .split(' ')
        .filter((pid) => pid !== '' && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('password-hash'))
        .map(Number)
    expect((await signIn(node)).status).toBe(200)
    const [pid = 0, ...others] = hashing()
    expect(others).toEqual([])
    expect(getPriority(pid)).toBe(getPriority(node.pid) + 5)
    expect((await signIn(node, 'another password')).status).toBe(401)
    expect(hashing()).toEqual([pid])
    process.kill(pid, 'SIGKILL')
    await until(() => hashing().length === 0)
    // A sign-in that the process had got when it ended is answered with 503 and Retry-After.
    await until(async () => (await signIn(node)).status === 200)
    expect(hashing()).toHaveLength(1)
  },
)
