import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { notice, openedProgram, signal } from '../../support/notify/notice.ts'

test('M13 a program that does not end is killed with its children after 10 s', { timeout: 30_000 }, async () => {
  const { receiver, allowed } = await openedProgram('(sleep 13; touch $(dirname "$0")/late) & sleep 60')
  const since = performance.now()
  expect(await receiver.send([notice()], signal())).toMatchObject({
    what: 'later',
    isPerhapsReceived: true,
    fault: 'timeout',
    message: expect.stringContaining('did not end within 10 s and was killed'),
  })
  await wait(since + 15_000 - performance.now())
  expect(existsSync(join(allowed, 'late'))).toBe(false)
})
