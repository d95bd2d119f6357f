import { expect, test } from 'vitest'
import { type BeatRequest, type MemberEffect, Membership, presentKeys } from '../../../src/core/watch/nodes/index.ts'
import type { StoredRow } from '../../../src/core/watch/outbox/index.ts'
import { LeasesTable } from '../../support/store/leases-table.ts'
import { outboxRowOf, requestOf, subjectOf } from '../../support/store/nodes.ts'

const second = 1_000

/** A node over a store in memory, whose clock begins with its own. `rows`: what its outbox has of the network. */
function nodeOver(
  table: LeasesTable,
  network: readonly string[],
  rows: readonly StoredRow[] = [],
  { process = 'a1', at = 0 }: { readonly process?: string; readonly at?: number } = {},
) {
  const settings = (keys: readonly string[]) => ({
    digest: keys.join(),
    network: presentKeys(keys.map((key) => ({ key, formerly: [] }))),
    own: new Set(['@a/Host/disk']),
  })
  const facts = { version: '1', startedAt: 0 }
  const member = new Membership({ node: 'a', process, facts, settings: settings(network) }, at)
  const all: MemberEffect[] = []
  const clock = { now: at, isAway: false, failsToRead: false, losesAnswer: (_: BeatRequest): boolean => false }
  /** The file of what it sent without the store. `isSlow`: it is read, and the answer waits for `settle`. */
  const file = { rows: [] as readonly StoredRow[], isSlow: false, settle: (): void => {} }
  const obey = (effects: readonly MemberEffect[]): void => {
    for (const effect of effects) {
      all.push(effect)
      if (effect.type === 'beat') {
        const answer = clock.isAway ? undefined : table.beat(effect.request, clock.now)
        const isKnown = answer !== undefined && !clock.losesAnswer(effect.request)
        obey(isKnown ? member.answered(effect.id, answer, clock.now) : member.unanswered(effect.id, clock.now))
      } else if (effect.type === 'read') {
        const stored = clock.failsToRead ? undefined : table.stored
        obey(member.read(effect.id, effect.shard, stored, clock.now))
      } else if (effect.type === 'release')
        member.released(
          effect.fate,
          rows.filter(({ subject }) => effect.stored.keys.has(subject.key)),
        )
      else if (effect.type === 'find') {
        const { rows: read } = file
        file.settle = () => obey(member.takeSent(read, clock.now))
        if (!file.isSlow) file.settle()
      } else if (effect.type === 'forget') file.rows = []
      else if (effect.type === 'hand over') {
        obey(member.handedOver(effect.what, table.handOver(effect.what), clock.now))
      }
    }
  }
  const run = (ms: number): void => {
    for (let left = ms; left > 0; left -= second) {
      clock.now += second
      obey(member.tick(clock.now))
    }
  }
  const reload = (keys: readonly string[]): void => obey(member.configured(settings(keys), clock.now))
  /** It sends messages without the store, which these rows are about. */
  const sendsAlone = (sent: readonly StoredRow[]): void => {
    file.rows = [...file.rows, ...sent]
    member.sentAlone()
  }
  return { member, clock, file, run, reload, obey, sendsAlone, effects: all }
}

/** Another process takes the lease of the network, whoever has it. */
const passToB = (table: LeasesTable, now: number): void => {
  for (const [shard, name] of [
    ['machine', '@b'],
    ['network', 'network'],
  ] as const) {
    const expected = table.lease(name, now)
    const take = { type: 'take', expected, epoch: (expected?.epoch ?? 0) + 1 } as const
    table.beat(requestOf('b', { asks: { [shard]: take } }), now)
  }
}
const handOverByB = (table: LeasesTable, row: StoredRow): void => {
  table.beat(requestOf('b', { asks: { machine: { type: 'take', expected: table.lease('@b', 0), epoch: 1 } } }), 0)
  expect(table.handOver({ node: 'b', process: 'process of b', number: 1, rows: [row] })).toBe(true)
}

const orders = outboxRowOf(subjectOf('Sql/orders'), 'mail', 1)

test('W4 the first node takes the lease, reads what is stored, and then runs and sends', () => {
  const { member, clock, run, effects } = nodeOver(new LeasesTable(), ['Sql/orders'])
  expect([member.runs('Sql/orders', 0), member.voice('Sql/orders', 0)]).toEqual([false, 'silent'])
  run(2 * second)
  expect(effects.flatMap((one) => (one.type === 'adopt' ? [...one.stored.keys] : []))).toContain('Sql/orders')
  expect([member.runs('Sql/orders', clock.now), member.voice('Sql/orders', clock.now)]).toEqual([true, 'coordinated'])
})

test('W4 a holder that cannot read what is stored tries once a second, and sends nothing until then', () => {
  const { member, clock, run, effects } = nodeOver(new LeasesTable(), ['Sql/orders'])
  clock.failsToRead = true
  run(5 * second)
  expect(effects.filter((one) => one.type === 'read' && one.shard === 'network')).toHaveLength(5)
  expect(member.voice('Sql/orders', clock.now)).toBe('silent')
  clock.failsToRead = false
  run(second)
  expect(member.voice('Sql/orders', clock.now)).toBe('coordinated')
})

test('W4 a node that stands by runs nothing of the network, and takes the lease of a lost holder', () => {
  const table = new LeasesTable()
  passToB(table, 0)
  const { member, clock, run } = nodeOver(table, ['Sql/orders'])
  run(6 * second)
  expect([member.runs('Sql/orders', clock.now), member.holder(clock.now)]).toEqual([false, 'b'])
  run(4 * second)
  expect([member.runs('Sql/orders', clock.now), member.holder(clock.now)]).toEqual([true, 'a'])
})

test('W4 a holder without the store runs on, sends after a minute, and goes on as the holder when the store is back', () => {
  const { member, clock, run, effects } = nodeOver(new LeasesTable(), ['Sql/orders'])
  run(3 * second)
  clock.isAway = true
  run(30 * second)
  expect([member.mode(clock.now), member.runs('Sql/orders', clock.now)]).toEqual(['cut off', true])
  expect(member.voice('Sql/orders', clock.now)).toBe('silent')
  run(45 * second)
  expect(member.voice('Sql/orders', clock.now)).toBe('alone')
  clock.isAway = false
  effects.length = 0
  run(3 * second)
  expect(member.voice('Sql/orders', clock.now)).toBe('coordinated')
  // Its memory counts: nobody else has stored anything.
  expect(effects.flatMap(({ type }) => (type === 'write again' || type === 'release' ? [type] : []))).toContain(
    'write again',
  )
  expect(effects.some(({ type }) => type === 'release')).toBe(false)
})

test('W4 a holder that lost the lease after a failover hands over what the next holder lacks', () => {
  for (const isLost of [true, false]) {
    const table = new LeasesTable()
    const { member, clock, run } = nodeOver(table, ['Sql/orders'], [orders])
    run(3 * second)
    const back = table.snapshot()
    const permit = member.beginWrite(['network'], clock.now)
    if (!permit) throw new Error('the holder may write')
    member.wrote(permit, table.writeOutbox(permit, [orders]), clock.now)
    if (isLost) back()
    passToB(table, clock.now)
    run(4 * second)
    expect(table.stored.outbox.map(({ subject }) => subject.key)).toEqual(['Sql/orders'])
    // Where nothing was lost, nothing is handed over.
    expect(table.lease('network', clock.now)?.writes).toBe(isLost ? 1_000 : 1)
  }
})

test('W4 what a node hands over right before a failover that loses it, it hands over once more', () => {
  const table = new LeasesTable()
  passToB(table, 0)
  const { clock, run, effects, sendsAlone } = nodeOver(table, ['Sql/orders'])
  run(3 * second)
  clock.isAway = true
  run(70 * second)
  sendsAlone([orders])
  clock.isAway = false
  passToB(table, clock.now)
  const isHandedOver = () => effects.some(({ type }) => type === 'hand over')
  while (!isHandedOver()) {
    const back = table.snapshot()
    run(second)
    if (isHandedOver()) back()
  }
  expect(table.stored.outbox).toEqual([])
  run(3 * second)
  expect(table.stored.outbox.map(({ subject }) => subject.key)).toEqual(['Sql/orders'])
})

test('W4 W23 a node neither reads what is stored nor takes the lease before the store has what its file has', () => {
  const table = new LeasesTable()
  const { member, clock, file, run, effects, sendsAlone } = nodeOver(table, ['Sql/orders'])
  sendsAlone([orders])
  file.isSlow = true
  run(5 * second)
  const types = () => effects.map(({ type }) => type).filter((type) => ['read', 'hand over', 'forget'].includes(type))
  expect([types(), member.holdsLease(clock.now)]).toEqual([[], false])
  file.settle()
  run(5 * second)
  expect([types(), member.holdsLease(clock.now)]).toEqual([['hand over', 'forget', 'read', 'read'], true])
  expect([table.stored.outbox, file.rows]).toMatchObject([[{ subject: orders.subject }], []])
  // What it sends while the file is read is read as well.
  effects.length = 0
  sendsAlone([orders])
  run(second)
  sendsAlone([orders])
  file.settle()
  run(second)
  expect(effects.filter(({ type }) => type === 'find')).toHaveLength(2)
  expect(effects.some(({ type }) => type === 'hand over')).toBe(false)
})

test('W4 a node without the lease that hands over again what a failover has taken does so once, and takes the lease then', () => {
  const table = new LeasesTable()
  const { member, clock, run, effects, sendsAlone } = nodeOver(table, ['Sql/orders'])
  run(3 * second)
  const back = table.snapshot()
  sendsAlone([orders])
  run(2 * second)
  clock.isAway = true
  run(10 * second)
  back()
  clock.isAway = false
  effects.length = 0
  run(10 * second)
  expect(effects.filter(({ type }) => type === 'hand over')).toHaveLength(1)
  expect(member.holdsLease(clock.now)).toBe(true)
})

test('W4 what a node has handed over once, it does not hand over again when it loses the lease later', () => {
  const end = { what: 'end', incident: 'other', level: 'failed', beganAt: 1, endedAt: 2, text: 'fine' } as const
  const rows: readonly StoredRow[] = [{ ...orders, row: { ...orders.row, ends: [end] } }]
  for (const why of ['it told that without the store', 'a svc.yaml dropped it', 'a failover took it']) {
    const table = new LeasesTable()
    const { member, clock, run, reload, effects, sendsAlone } = nodeOver(table, ['Sql/orders', 'Sql/old'], rows)
    run(3 * second)
    if (why === 'a failover took it') {
      const back = table.snapshot()
      const permit = member.beginWrite(['network'], clock.now)
      if (!permit) throw new Error('the holder may write')
      member.wrote(permit, table.writeOutbox(permit, rows), clock.now)
      back()
    } else {
      clock.isAway = true
      run(70 * second)
      if (why === 'a svc.yaml dropped it') reload(['Sql/old'])
      else sendsAlone(rows)
      clock.isAway = false
    }
    passToB(table, clock.now)
    run(4 * second)
    const all = () => effects.flatMap((one) => (one.type === 'hand over' ? [one.what.rows] : []))
    expect(all()).toEqual([rows])
    reload(['Sql/orders', 'Sql/old'])
    run(10 * second)
    expect(member.holdsLease(clock.now)).toBe(true)
    passToB(table, clock.now)
    run(4 * second)
    expect(all()).toHaveLength(1)
  }
})

test('W4 what a svc.yaml drops that comes without the store is handed over, and a former name stays known', () => {
  const table = new LeasesTable()
  const { member, clock, run, reload, effects } = nodeOver(table, ['Sql/orders', 'Sql/old'], [orders])
  run(3 * second)
  clock.isAway = true
  run(30 * second)
  reload(['Sql/new', 'Sql/old'])
  expect(effects.flatMap((one) => (one.type === 'release' ? [...one.stored.keys] : []))).toEqual(['Sql/orders'])
  expect([member.isElsewhere('Sql/orders'), member.isElsewhere('Sql/old')]).toEqual([true, false])
  clock.isAway = false
  run(3 * second)
  expect(table.stored.outbox.map(({ subject }) => subject.key)).toEqual(['Sql/orders'])
})

test('W4 a node without the store goes on with what a svc.yaml renames, and with its machine, though it never held a lease', () => {
  const table = new LeasesTable()
  passToB(table, 0)
  const { member, clock, run, reload } = nodeOver(table, ['Sql/orders'])
  clock.isAway = true
  run(30 * second)
  reload(['Sql/orders'])
  expect(member.mode(clock.now)).toBe('cut off')
  expect(['Sql/orders', '@a/Host/disk', '@b/Host/disk'].map((key) => member.isElsewhere(key))).toEqual([
    ...[false, false, true],
  ])
})

test('W4 a write that is answered after the other lease was taken counts as acknowledged', () => {
  const table = new LeasesTable()
  passToB(table, 0)
  const { member, clock, run } = nodeOver(table, ['Sql/orders'])
  run(3 * second)
  const permit = member.beginWrite(['machine'], clock.now)
  if (!permit) throw new Error('it holds the lease of its machine')
  // B is gone: the node takes the lease of the network while its write is on its way.
  run(6 * second)
  expect(member.holdsLease(clock.now)).toBe(true)
  member.wrote(permit, 'stored', clock.now)
  const next = member.beginWrite(['machine'], clock.now)
  expect(next).toMatchObject([{ acknowledged: 1, number: 2 }])
})

test('W4 what a svc.yaml removes while other nodes have it is handed over if a failover has taken it, noticed or not', () => {
  for (const [isLost, isNoticed] of [
    [true, false],
    [true, true],
    [false, false],
  ]) {
    const table = new LeasesTable()
    const take = { type: 'take', expected: undefined, epoch: 1 } as const
    table.beat(requestOf('b', { asks: { machine: take } }), 0)
    const { member, clock, run, reload } = nodeOver(table, ['Sql/orders', 'Sql/old'], [orders])
    run(3 * second)
    const back = table.snapshot()
    const permit = member.beginWrite(['network'], clock.now)
    if (!permit) throw new Error('the holder may write')
    member.wrote(permit, table.writeOutbox(permit, [orders]), clock.now)
    if (isLost) back()
    // It has seen the smaller number of writes, and not yet stored again what it has.
    clock.failsToRead = isNoticed === true
    if (isNoticed) run(2 * second)
    reload(['Sql/old'])
    clock.failsToRead = false
    run(4 * second)
    expect(table.stored.outbox.map(({ subject }) => subject.key)).toEqual(['Sql/orders'])
    expect(table.lease('network', clock.now)?.writes).toBe(isLost ? 1_000 : 1)
  }
})

test('W4 a node notices a failover that took what it handed over, although others have handed over meanwhile', () => {
  const table = new LeasesTable()
  passToB(table, 0)
  const { clock, run, sendsAlone, effects } = nodeOver(table, ['Sql/orders'])
  const keep = (seconds: number): void => {
    for (let n = 0; n < seconds; n += 1) {
      passToB(table, clock.now)
      run(second)
    }
  }
  keep(3)
  clock.isAway = true
  run(70 * second)
  sendsAlone([orders])
  clock.isAway = false
  const numbers = () => effects.flatMap((one) => (one.type === 'hand over' ? [one.what.number] : []))
  let back = table.snapshot()
  while (numbers().length === 0) {
    back = table.snapshot()
    keep(1)
  }
  back()
  // With that, the lease has as many writes as this node knows.
  handOverByB(table, outboxRowOf(subjectOf('Sql/other'), 'mail', 1))
  keep(4)
  expect(numbers()).toEqual([1, 2])
  expect(table.stored.outbox.map(({ subject }) => subject.key)).toEqual(['Sql/other', 'Sql/orders'])
})

test('W4 what only a node has that restarts waits for it, and is removed after 10 min', () => {
  const table = new LeasesTable()
  const take = { type: 'take', expected: undefined, epoch: 1 } as const
  table.beat(requestOf('b', { asks: { machine: take } }), 0)
  table.leave('b', 'process of b', 0)
  handOverByB(table, outboxRowOf(subjectOf('Sql/new'), 'mail', 1))
  const { run, effects, member } = nodeOver(table, ['Sql/orders'])
  const adopted = () => effects.flatMap((one) => (one.type === 'adopt' ? [...one.stored.keys] : []))
  run(500 * second)
  expect(adopted()).toContain('Sql/orders')
  expect([adopted().includes('Sql/new'), member.isElsewhere('Sql/new')]).toEqual([false, true])
  run(120 * second)
  expect(adopted()).toContain('Sql/new')
})

test('W4 a svc.yaml that comes during a roll-out has 10 min of its own', () => {
  const table = new LeasesTable()
  const take = { type: 'take', expected: undefined, epoch: 1 } as const
  table.beat(requestOf('b', { asks: { machine: take } }), 0)
  const { clock, member, reload, run } = nodeOver(table, ['Sql/orders'])
  const runBesideB = (ms: number): void => {
    for (let left = ms; left > 0; left -= 5 * second) {
      table.beat(requestOf('b', { asks: { machine: { type: 'renew', epoch: 1 } } }), clock.now)
      run(5 * second)
    }
  }
  runBesideB(590 * second)
  reload(['Sql/orders', 'Sql/more'])
  runBesideB(590 * second)
  expect(member.isElsewhere('Sql/new')).toBe(true)
  runBesideB(20 * second)
  expect(member.isElsewhere('Sql/new')).toBe(false)
})

test('W4 a holder whose lease has lapsed asks for it in the second in which the store is back', () => {
  for (const phaseMs of [0, second]) {
    const { clock, member, run } = nodeOver(new LeasesTable(), ['Sql/orders'])
    run(3 * second + phaseMs)
    clock.isAway = true
    run(6 * second)
    clock.isAway = false
    run(second)
    expect(member.holdsLease(clock.now)).toBe(true)
  }
})

test('W4 a node without the store is silent about the network while another one says that it speaks, but not about its machine', () => {
  const table = new LeasesTable()
  const facts = { version: '1', startedAt: 0, peer: 'http://b.example.com' }
  const take = { type: 'take', expected: undefined, epoch: 1 } as const
  for (const shard of ['machine', 'network']) table.beat(requestOf('b', { facts, asks: { [shard]: take } }), 0)
  const { member, clock, run, effects } = nodeOver(table, ['Sql/orders'])
  run(3 * second)
  clock.isAway = true
  run(45 * second)
  const addresses = (): readonly string[] =>
    effects.flatMap((one) => (one.type === 'ask' ? one.nodes.map(({ address }) => address) : []))
  expect([...addresses(), member.speaksFor('c', true, clock.now)]).toEqual([false])
  run(5 * second)
  expect(addresses()).toEqual(['http://b.example.com'])
  // For a node after it, it speaks, but neither for the last holder nor while its schedule does not keep up.
  expect(member.speaksFor('c', true, clock.now)).toBe(true)
  expect([member.speaksFor('b', true, clock.now), member.speaksFor('c', false, clock.now)]).toEqual([false, false])
  run(20 * second)
  const voices = () => ['Sql/orders', '@a/Host/disk'].map((key) => member.voice(key, clock.now))
  expect(voices()).toEqual(['alone', 'alone'])
  member.otherSpeaks('b', clock.now, clock.now)
  expect([...voices(), member.speaker(clock.now)]).toEqual(['silent', 'alone', 'b'])
  run(13 * second)
  expect(voices()).toEqual(['alone', 'alone'])
  member.otherSpeaks('b', clock.now, clock.now)
  clock.isAway = false
  run(2 * second)
  expect([member.mode(clock.now), member.speaker(clock.now)]).toEqual(['member', undefined])
})

test('W4 a svc.yaml that brings what waits for the end of a roll-out takes it from the store, and overwrites nothing', () => {
  const table = new LeasesTable()
  const take = { type: 'take', expected: undefined, epoch: 1 } as const
  table.beat(requestOf('b', { asks: { machine: take } }), 0)
  handOverByB(table, outboxRowOf(subjectOf('Sql/new'), 'mail', 1))
  const { run, reload, effects } = nodeOver(table, ['Sql/orders'])
  run(5 * second)
  effects.length = 0
  reload(['Sql/orders', 'Sql/new'])
  run(5 * second)
  const keysOf = (type: 'adopt' | 'write again') =>
    effects.flatMap((one) => (one.type === type ? [...one.stored.keys] : []))
  expect(keysOf('adopt')).toEqual(['Sql/new'])
  expect(keysOf('write again')).toEqual(['Sql/orders', '/svc/nodes'])
})

test('W4 of two processes of one name, the earlier one gives way, although no answer has told it that it had the lease', () => {
  const table = new LeasesTable()
  const earlier = nodeOver(table, ['Sql/orders'])
  earlier.clock.losesAnswer = ({ asks }) => asks.machine.type === 'take'
  earlier.run(second)
  earlier.clock.losesAnswer = () => false
  expect(table.lease('@a', second)?.process).toBe('a1')
  const later = nodeOver(table, ['Sql/orders'], [], { process: 'a2', at: second })
  later.run(second)
  for (let count = 0; count < 10; count += 1) {
    earlier.run(second)
    later.run(second)
  }
  const { now } = later.clock
  expect([earlier.member.mode(now), later.member.mode(now)]).toEqual(['displaced', 'member'])
  expect(table.lease('@a', now)?.process).toBe('a2')
})

test('W4 a holder whose write a store refuses that has gone back takes the lease anew at once', () => {
  const table = new LeasesTable()
  const { member, clock, run, obey } = nodeOver(table, ['Sql/orders'])
  run(3 * second)
  const back = table.snapshot()
  const write = (): void => {
    const permit = member.beginWrite(['network'], clock.now)
    if (!permit) throw new Error('the holder may write')
    obey(member.wrote(permit, table.writeOutbox(permit, [orders]), clock.now))
  }
  write()
  back()
  write()
  expect([member.holdsLease(clock.now), table.lease('network', clock.now)?.epoch]).toEqual([true, 2])
})

test('W4 a process that stood still knows nothing until the store has answered a new question', () => {
  const { member, clock, run } = nodeOver(new LeasesTable(), ['Sql/orders'])
  run(3 * second)
  const stored = new LeasesTable()
  const beatOf = (effects: readonly MemberEffect[]) => effects.find((one) => one.type === 'beat')
  const beat = beatOf(member.isolated(true, clock.now))
  if (!beat) throw new Error('it tells the store at once')
  clock.now += 5_500
  // The answer to what it asked before is that of a world that is gone.
  const late = member.answered(beat.id, stored.beat(beat.request, clock.now), clock.now)
  expect([member.mode(clock.now), late.some(({ type }) => type === 'adopt')]).toEqual(['joining', false])
  expect(beatOf(member.tick(clock.now))).toBeDefined()
  expect(member.mode(clock.now)).toBe('joining')
  // Nor does it count how long it has been without the store.
  const other = nodeOver(new LeasesTable(), ['Sql/orders'])
  other.run(3 * second)
  other.clock.isAway = true
  other.run(10 * second)
  expect(other.member.mode(other.clock.now)).toBe('cut off')
  other.clock.now += 70 * second
  other.member.tick(other.clock.now)
  expect(other.member.mode(other.clock.now)).toBe('joining')
})

test('W4 what a node takes within a minute after it sent by itself is in doubt, and later it is not', () => {
  for (const laterMs of [second, 70 * second]) {
    const table = new LeasesTable()
    passToB(table, 0)
    handOverByB(table, orders)
    const { clock, run, effects } = nodeOver(table, ['Sql/orders'])
    run(3 * second)
    clock.isAway = true
    run(75 * second)
    clock.isAway = false
    for (let ms = 0; ms < laterMs; ms += second) {
      passToB(table, clock.now)
      run(second)
    }
    effects.length = 0
    run(10 * second)
    const taken = effects.flatMap((one) => (one.type === 'adopt' ? one.stored.outbox : []))
    expect(taken.map(({ row }) => row?.isInDoubt)).toEqual([laterMs === second ? true : undefined])
  }
})

test('W4 the answer to a write of an epoch that is over ends no later write', () => {
  const table = new LeasesTable()
  const { member, clock, run } = nodeOver(table, ['Sql/orders'])
  run(3 * second)
  const late = member.beginWrite(['network'], clock.now)
  if (!late) throw new Error('the holder may write')
  expect(member.beginWrite(['network'], clock.now)).toBeUndefined()
  passToB(table, clock.now)
  run(11 * second)
  // It has the lease again, and waits for no answer to what it wrote before.
  expect(member.beginWrite(['network'], clock.now)).toMatchObject([{ epoch: 3 }])
  member.wrote(late, 'stored', clock.now)
  expect(member.beginWrite(['network'], clock.now)).toBeUndefined()
})

test('W26 a node without a network neither asks another one whether it reaches a peer, nor answers', () => {
  const table = new LeasesTable()
  const question = { id: 1, node: 'a', key: 'Sql/orders', check: 'round trip', depth: 'Basic' } as const
  const crossChecks = { questions: [question], answers: [] }
  const facts = { version: '1', startedAt: 0, digest: 'Sql/orders', crossChecks }
  const take = { type: 'take', expected: undefined, epoch: 1 } as const
  table.beat(requestOf('b', { facts, asks: { machine: take } }), 0)
  const { member, clock, run, obey, effects } = nodeOver(table, ['Sql/orders'])
  run(3 * second)
  const partners = () =>
    ['Sql/orders', '@a/Host/disk', '/svc/nodes'].map((key) => member.otherNode(key, clock.now)?.other)
  expect(partners()).toEqual(['b', undefined, undefined])
  const looks = effects.flatMap((one) => (one.type === 'look' ? [one.question] : []))
  expect(looks).toMatchObject([{ from: 'b', id: 1 }])
  const answers = () => {
    run(2 * second)
    return table.rows(clock.now).find(({ node }) => node === 'a')?.facts?.crossChecks?.answers
  }
  obey(member.isolated(true, clock.now))
  for (const one of looks) member.looked(one, false)
  expect([partners(), answers()]).toEqual([[undefined, undefined, undefined], []])
  obey(member.isolated(false, clock.now))
  for (const one of looks) member.looked(one, false)
  expect(answers()).toMatchObject([{ node: 'b', id: 1, reaches: false }])
})

test('W4 a node runs what looks at its machine also beside a later process of its name, but not after a standstill or once it ends', () => {
  const table = new LeasesTable()
  const { member, clock, run, obey } = nodeOver(table, ['Sql/orders'])
  const runs = () => ['Sql/orders', '@a/Host/disk'].map((key) => member.runs(key, clock.now))
  run(3 * second)
  expect(runs()).toEqual([true, true])
  clock.now += 6 * second
  expect(runs()).toEqual([false, false])
  run(2 * second)
  expect(runs()).toEqual([true, true])
  const expected = table.lease('@a', clock.now)
  const machine = { type: 'take', expected, epoch: (expected?.epoch ?? 0) + 1 } as const
  table.beat(requestOf('a', { process: 'a2', asks: { machine } }), clock.now)
  run(4 * second)
  expect([member.mode(clock.now), ...runs()]).toEqual(['displaced', false, true])
  obey(member.leave(clock.now))
  expect(runs()).toEqual([false, false])
})
