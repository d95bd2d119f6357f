import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { roleEndsPart } from '../../../src/core/service/notify/role-ends.ts'
import type { Data, EndingGrant } from '../../../src/core/store/index.ts'
import { folder, load } from '../../config/given.ts'
import { until } from '../../support/suite/until.ts'

test('O8 M17 the notice that a role ends soon, with the offset of its time, reaches a receiver that starts a program', async () => {
  const allowed = await folder()
  const program = join(allowed, 'sms')
  writeFileSync(program, '#!/bin/sh\ncat > $(dirname "$0")/body\n')
  chmodSync(program, 0o755)
  const config = await load(`serve: {timezone: Asia/Kolkata}\nnotify: [{name: sms, exec: {program: "${program}"}}]`)
  const endsAt = Date.now() + 300_000
  const grant = { seq: 1, kind: 'role', name: 'Deploy', userName: 'bob', endsAt } as unknown as EndingGrant
  const users = { noticesDue: async () => [grant], claimNotice: async () => true, returnNotice: async () => {} }
  const data = { users, clock: { now: () => Date.now() } } as unknown as Data
  const logs: string[] = []
  const part = roleEndsPart({
    config: { ...config, exec: { allow: [allowed] } },
    version: '1',
    data: async () => data,
    log: ({ msg }) => void logs.push(msg),
  })
  await part.start?.()
  await part.answers?.()
  const body = join(allowed, 'body')
  await until(() => logs.length > 0 || (existsSync(body) && readFileSync(body, 'utf8').endsWith('\n')))
  await part.close?.()
  expect(logs).toEqual([])
  expect(readFileSync(body, 'utf8')).toMatch(/role Deploy of bob ends soon.* at [-\d]+ \d\d:\d\d \+05:30/s)
})
