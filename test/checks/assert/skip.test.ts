import { expect, test } from 'vitest'
import { withoutSkipped } from '../../../src/core/checks/assert/skip.ts'
import { slots } from '../../../src/core/checks/kinds/postgres/slots.ts'
import { allQueues } from '../../../src/core/checks/kinds/rabbitmq/all-queues.ts'
import { databases } from '../../../src/core/checks/kinds/sqlserver/checks.ts'
import { evaluated } from '../../support/engine/run-kind.ts'

const names = ['orders', 'tmp.1', 'tmp.2', 'Tmp.3']
test.each<readonly [string, readonly string[], readonly string[]]>([
  ['nothing', [], names],
  ['a name', ['tmp.1'], ['orders', 'tmp.2', 'Tmp.3']],
  ['a pattern', ['/^tmp\\./'], ['orders', 'Tmp.3']],
  ['a pattern with a flag, and a name', ['/^tmp\\./i', 'orders'], []],
  ['a name that none has', ['tmp'], names],
])('what svc.yaml leaves out by %s is not checked', (_, skipped, left) => {
  expect(withoutSkipped(names, (name) => name, skipped)).toEqual(left)
})

test('a pattern that is given up leaves out nothing', () => {
  const slow = `${'a'.repeat(40)}!`
  expect(withoutSkipped([slow], (name) => name, ['/^(a+)+(?=b)$/'])).toEqual([slow])
})

const lost = { active: false, idle: undefined, bytes: 0, lost: true, isSpare: false }
const down = { vhost: '/', state: 'down', node: '', members: undefined, online: undefined, ready: 0, unacknowledged: 0 }
const queue = (name: string) => ({ ...down, name })

test.each<readonly [string, (skip: readonly string[]) => readonly { readonly status: string }[]]>([
  ['a replication slot', (skipSlots) => evaluated(slots, [{ name: 'tmp_1', ...lost }], { skipSlots })],
  [
    'a queue',
    (skipQueues) => evaluated(allQueues, { queues: [queue('tmp_1')], total: 1, hidden: undefined }, { skipQueues }),
  ],
  ['a database', (ignore) => evaluated(databases, [{ name: 'tmp_1', state: 'OFFLINE' }], { ignore })],
])('%s is left out by name or pattern, and others are not', (_, look) => {
  const statuses = (skip: readonly string[]) => look(skip).map(({ status }) => status)
  expect(statuses([])).toEqual(['failed'])
  expect(statuses(['tmp_2', '/^orders/'])).toEqual(['failed'])
  expect(statuses(['tmp_1'])).toEqual(['ok'])
  expect(statuses(['/^tmp_/'])).toEqual(['ok'])
})
