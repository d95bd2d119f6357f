import { expect, test } from 'vitest'
import { Outbox, type OutboxRow, type Present, withHandedOver, withNews } from '../../../src/core/watch/outbox/index.ts'
import type { Incident, StoredSubject } from '../../../src/core/watch/states/index.ts'

const subject: StoredSubject = { key: 'App/http/p2', type: 'App', monitor: 'http p2', check: 'connect' }
const keys = new Set([subject.key])
const cause = { key: 'App/http/p1', type: 'App', monitor: 'http p1' } as const
const second = 1_000

const incident = (id: string, beganAt: number, more: Partial<Incident> = {}): Incident => ({
  id,
  beganAt,
  confirmedAt: beganAt + 20 * second,
  level: 'failed',
  message: 'it fails',
  isFlapping: false,
  isUnobserved: false,
  ...more,
})

const pager = { name: 'pager', folds: false, remindMs: Number.POSITIVE_INFINITY, accepts: () => true }
const sentAlone = {
  incident: 'alone',
  level: 'failed',
  isFlapping: false,
  beganAt: 60 * second,
  observedAt: 90 * second,
  at: 120 * second,
} as const

/** A receiver that has got an incident from a node without the store, while the store has another one of the same fault. */
function receiver(present: () => Present['state'], row: OutboxRow = { last: sentAlone, ends: [] }) {
  const outbox = new Outbox(0, (one) => ({ subject: one, state: present(), isSilenced: false }), '@a//svc/receivers')
  outbox.configure([pager], 0)
  outbox.takeOver(keys, [{ receiver: 'pager', subject, row }], 200 * second)
  outbox.watch(subject)
  return (now: number) => sends(outbox, now)
}

/** Sends the messages that are due now, which the receiver accepts. */
const sends = (outbox: Outbox, now: number): readonly string[] =>
  outbox.tick(now).effects.flatMap((effect) => {
    if (effect.type !== 'send') return []
    outbox.answered('pager', effect.attempt, { what: 'accepted' }, now)
    return effect.items.map(({ what, incident: of }) => `${what} ${of}`)
  })

const failing = (at: number, of: Incident): Present['state'] => ({
  level: 'failed',
  message: 'it fails',
  depth: 'Basic',
  latest: { level: 'failed', at, since: 0, fault: 'timeout' },
  incident: of,
})

test('W4 no receiver gets the recovery of a victim which a node without the store reported as failed', () => {
  const victim = incident('stored', 30 * second, { cause })
  let state = failing(200 * second, victim)
  const sentAt = receiver(() => state)
  expect(sentAt(200 * second)).toEqual([])
  state = failing(300 * second, victim)
  expect(sentAt(300 * second)).toEqual([])
  // Its cause is gone, and it still fails.
  state = failing(400 * second, incident('stored', 30 * second))
  expect(sentAt(400 * second)).toEqual(['end alone', 'begin stored'])
})

test('W4 a receiver gets an open incident again if its end may have been sent without the store', () => {
  const stored = incident('stored', 30 * second)
  let state: Present['state'] = { ...failing(190 * second, stored), latest: undefined }
  const outbox = new Outbox(0, (one) => ({ subject: one, state, isSilenced: false }), '@a//svc/receivers')
  outbox.configure([pager], 0)
  const last = { ...sentAlone, incident: 'stored' }
  const row = { last, ends: [], isInDoubt: true } as const
  outbox.takeOver(keys, [{ receiver: 'pager', subject, row }], 200 * second)
  outbox.watch(subject)
  // A run decides first. What is in doubt is stored, whoever owns it next.
  expect(outbox.tick(200 * second).effects).toEqual([
    { type: 'store', rows: [{ receiver: 'pager', subject, row: expect.objectContaining({ isInDoubt: true }) }] },
    { type: 'ask', key: subject.key, depth: 'Basic' },
  ])
  const healthy = { level: 'ok', at: 201 * second, since: 201 * second } as const
  state = { ...failing(0, stored), latest: healthy }
  expect(sends(outbox, 201 * second)).toEqual([])
  state = failing(210 * second, stored)
  expect(sends(outbox, 210 * second)).toEqual(['reminder stored'])
  state = failing(211 * second, stored)
  expect(sends(outbox, 211 * second)).toEqual([])
})

test('W4 a receiver gets the recovery of a victim which a node without the store reported as failed', () => {
  let state = failing(200 * second, incident('stored', 30 * second, { cause }))
  const sentAt = receiver(() => state)
  expect(sentAt(200 * second)).toEqual([])
  const latest = { level: 'ok', at: 320 * second, since: 300 * second } as const
  state = { level: 'ok', message: 'fine', depth: 'Basic', latest }
  expect(sentAt(320 * second)).toEqual(['end alone'])
  expect(sentAt(400 * second)).toEqual([])
})

test('W4 a node that has sent without the store sends nothing once more when the store has its file', () => {
  const sent = incident('alone', 60 * second)
  let state = failing(100 * second, sent)
  const outbox = new Outbox(0, (one) => ({ subject: one, state, isSilenced: false }), '@a//svc/receivers')
  outbox.configure([pager], 0)
  outbox.watch(subject)
  expect(sends(outbox, 100 * second)).toEqual(['begin alone'])
  // The file has the begin as of right before it left, and the store gets that first.
  const attempt = { ...sentAlone, observedAt: 100 * second, at: 100.5 * second, isUnsure: true, isNews: true } as const
  outbox.again([{ receiver: 'pager', subject, row: { attempt, ends: [] } }], 130 * second)
  state = failing(130 * second, sent)
  expect(sends(outbox, 130 * second)).toEqual([])
  // That of another process counts.
  const other = { ...attempt, incident: 'other' }
  outbox.again([{ receiver: 'pager', subject, row: { attempt: other, ends: [] } }], 130 * second)
  const latest = { level: 'ok', at: 320 * second, since: 300 * second } as const
  state = { level: 'ok', message: 'fine', depth: 'Basic', latest }
  expect(sends(outbox, 320 * second)).toEqual(['end other', 'end alone'])
})

test('W4 what is up to another node waits, and holds nothing else up', () => {
  const disk: StoredSubject = { key: '@a/Host/disk', monitor: 'disk', check: 'space' }
  let isUpToOther = true
  const states = new Map([
    [subject.key, failing(100 * second, incident('network', 60 * second))],
    [disk.key, failing(100 * second, incident('machine', 60 * second))],
  ])
  const outbox = new Outbox(
    0,
    (one) => ({ subject: one, state: states.get(one.key) as Present['state'], isSilenced: false }),
    '@a//svc/receivers',
    (key) => isUpToOther && key === subject.key,
  )
  outbox.configure([{ ...pager, folds: true }], 0)
  for (const one of [subject, disk]) outbox.watch(one)
  expect([...sends(outbox, 100 * second), ...sends(outbox, 110 * second)]).toEqual(['begin machine'])
  // No run is asked for, either, while it waits.
  expect(outbox.tick(300 * second).effects).toEqual([])
  isUpToOther = false
  states.set(subject.key, failing(301 * second, incident('network', 60 * second)))
  expect(sends(outbox, 301 * second)).toEqual(['begin network'])
})

const well: Present['state'] = {
  level: 'ok',
  message: 'fine',
  depth: 'Basic',
  latest: { level: 'ok', at: 320 * second, since: 300 * second },
}
const wordOf = (of: string) => ({ ...sentAlone, incident: of })
const rowOf = (of: string): OutboxRow => ({ last: wordOf(of), ends: [] })
const endOf = (of: string) =>
  ({ what: 'end', incident: of, level: 'failed', beganAt: 60 * second, endedAt: 100 * second, text: 'fine' }) as const

test('W4 a receiver gets the end of each incident that nodes without the store sent of one fault', () => {
  const row = withNews(withNews(rowOf('of a'), rowOf('of b')), rowOf('of c'))
  let state = failing(200 * second, incident('of a', 60 * second))
  const sentAt = receiver(() => state, row)
  // While the fault stands, none of them ends.
  expect(sentAt(200 * second)).toEqual([])
  state = well
  expect(sentAt(320 * second)).toEqual(['end of b', 'end of c', 'end of a'])
  expect(sentAt(400 * second)).toEqual([])
})

test('W4 an incident goes on that another node without the store has sent, and the others end when it ends', () => {
  let state = failing(200 * second, incident('of b', 60 * second))
  const sentAt = receiver(() => state, withNews(rowOf('of a'), rowOf('of b')))
  expect(sentAt(200 * second)).toEqual([])
  state = well
  expect(sentAt(320 * second)).toEqual(['end of a', 'end of b'])
})

test('W4 the ends of all of them precede the next fault', () => {
  const state = failing(200 * second, incident('the next', 190 * second))
  const sentAt = receiver(() => state, withNews(rowOf('of a'), rowOf('of b')))
  expect(sentAt(200 * second)).toEqual(['end of b', 'end of a', 'begin the next'])
})

test('W4 a fault that stands is sent once more after an end that another node has noted without the store', () => {
  const state = failing(200 * second, incident('of a', 60 * second))
  const sentAt = receiver(() => state, withNews(rowOf('of a'), { ends: [endOf('of b')] }))
  expect(sentAt(200 * second)).toEqual(['end of b', 'reminder of a'])
  expect(sentAt(201 * second)).toEqual([])
})

test('W4 what is already stored changes no row', () => {
  const attempt = wordOf('of b')
  const rows: readonly OutboxRow[] = [
    rowOf('of a'),
    { attempt: wordOf('of a'), ends: [] },
    withNews(rowOf('of b'), rowOf('of a')),
    { attempt, ends: [endOf('of a')] },
  ]
  for (const row of rows) {
    expect(withNews(row, rowOf('of a'))).toBe(row)
    expect(withNews(row, { ends: [endOf('of a')] })).toBe(row)
  }
})

test('W4 a row that only waits for a receiver takes over what a node without the store has sent', () => {
  const need = { incident: 'of a', level: 'failed', beganAt: 60 * second, since: 90 * second } as const
  const isNews = true
  expect(withNews({ need, ends: [] }, rowOf('of b'))).toEqual({ need, last: { ...wordOf('of b'), isNews }, ends: [] })
  expect(withNews({ ends: [endOf('of a')] }, rowOf('of b'))).toEqual({
    last: { ...wordOf('of b'), isNews },
    ends: [endOf('of a')],
    isInDoubt: true,
  })
})

test('W4 an end that a process without the store has told stays in the store as told, although nothing there waits for it', () => {
  // The incident may be stored, and the row about it not.
  const over = { ...wordOf('of a'), isOver: true } as const
  expect(withHandedOver({ ends: [] }, { last: over, ends: [] })).toMatchObject({
    last: { incident: 'of a', isOver: true },
  })
})

test('W4 a holder sends none of several ends that a process without the store has told, whatever stands by then', () => {
  const over = ['of a', 'of b'].map((incident) => ({ ...wordOf(incident), isOver: true }) as const)
  const [first, other] = over
  const inMemory = { ends: [endOf('of a'), endOf('of b')] }
  const news: OutboxRow = { attempt: first, others: other ? [other] : [], ends: [] }
  const last = wordOf('of c')
  for (const [own, left] of [
    [inMemory, []],
    [{ ...inMemory, last }, ['of c']],
  ] as const) {
    const outbox = new Outbox(0, () => 'removed', '@a//svc/receivers')
    outbox.configure([pager], 0)
    outbox.takeOver(keys, [{ receiver: 'pager', subject, row: own }], 200 * second)
    outbox.again([{ receiver: 'pager', subject, row: withHandedOver(own, news) }], 200 * second)
    const { effects } = outbox.tick(200 * second)
    const sent = effects.flatMap((one) => (one.type === 'send' ? one.items.map(({ incident }) => incident) : []))
    expect(sent).toEqual(left)
  }
})

test('W4 a holder does not send an end that a node without the store has told and handed over before it was due', () => {
  const over = { ...wordOf('of a'), isOver: true } as const
  const inMemory = { ends: [endOf('of a')] }
  const stored = withHandedOver(inMemory, { last: over, ends: [] })
  expect(stored).toMatchObject({ last: { incident: 'of a', isOver: true, isNews: true }, ends: [] })
  const well: Present['state'] = {
    level: 'ok',
    message: 'ok',
    depth: 'Basic',
    latest: { level: 'ok', at: 0, since: 0 },
  }
  const outbox = new Outbox(0, (one) => ({ subject: one, state: well, isSilenced: false }), '@a//svc/receivers')
  outbox.configure([pager], 0)
  outbox.takeOver(keys, [{ receiver: 'pager', subject, row: inMemory }], 200 * second)
  expect(outbox.again([{ receiver: 'pager', subject, row: stored }], 200 * second)).toEqual([
    { receiver: 'pager', subject, row: undefined },
  ])
})

test('W4 the end that another node has told follows the messages that this node knew, whatever their clocks say', () => {
  const [begin, reminder] = [120 * second, 190 * second]
  const own: OutboxRow = { last: { ...wordOf('of a'), at: reminder }, ends: [] }
  const over = { ...wordOf('of a'), at: 250 * second, isOver: true } as const
  const sentBy = (after: readonly number[], isOfStore: boolean): readonly string[] => {
    const outbox = new Outbox(0, (one) => ({ subject: one, state: well, isSilenced: false }), '@a//svc/receivers')
    outbox.configure([pager], 0)
    const stored = { receiver: 'pager', subject, row: withHandedOver(own, { attempt: { ...over, after }, ends: [] }) }
    outbox.takeOver(keys, [isOfStore ? stored : { ...stored, row: own }], 200 * second)
    if (!isOfStore) outbox.again([stored], 200 * second)
    outbox.watch(subject)
    return sends(outbox, 320 * second)
  }
  for (const isOfStore of [false, true]) {
    expect(sentBy([begin], isOfStore)).toEqual(['end of a'])
    expect(sentBy([begin, reminder], isOfStore)).toEqual([])
  }
})

test('W4 what other nodes have handed over is not replaced by an owner that writes its memory again after a failover', () => {
  const state = failing(190 * second, incident('of a', 60 * second))
  const outbox = new Outbox(0, (one) => ({ subject: one, state, isSilenced: false }), '@a//svc/receivers')
  outbox.configure([pager], 0)
  const inMemory = { last: wordOf('of a'), ends: [] }
  outbox.takeOver(keys, [{ receiver: 'pager', subject, row: inMemory }], 200 * second)
  const other = { ...subject, check: 'status' }
  const [stale, ofOthers] = [{ last: wordOf('over'), ends: [] }, withNews({ ends: [] }, rowOf('of b'))]
  const rows = outbox.again(
    [
      { receiver: 'pager', subject, row: withNews(rowOf('earlier'), { ...rowOf('of b'), ends: [endOf('of c')] }) },
      { receiver: 'pager', subject: { ...subject, check: 'latency' }, row: stale },
      { receiver: 'pager', subject: other, row: ofOthers },
    ],
    200 * second,
  )
  const gist = rows.map(({ subject: { check }, row }) => [
    check,
    row?.last?.incident,
    row?.others?.map(({ incident: of }) => of),
    row?.ends.map(({ incident: of }) => of),
  ])
  expect(gist).toEqual([
    ['connect', 'of a', ['of b'], ['of c']],
    ['status', 'of b', undefined, []],
    ['latency', undefined, undefined, undefined],
  ])
  expect(outbox.rows()).toHaveLength(2)
})

test('W4 a holder learns from the store that another node has told the end of its incident, unless it told more of it since', () => {
  for (const toldSince of [false, true]) {
    let state = failing(200 * second, incident('of a', 60 * second))
    const outbox = new Outbox(0, (one) => ({ subject: one, state, isSilenced: false }), '@a//svc/receivers')
    outbox.configure([pager], 0)
    const own = { ...rowOf('of a'), ...(toldSince ? { isInDoubt: true as const } : {}) }
    outbox.takeOver(keys, [{ receiver: 'pager', subject, row: own }], 200 * second)
    outbox.watch(subject)
    expect(sends(outbox, 200 * second)).toEqual(toldSince ? ['reminder of a'] : [])
    const over = { ...wordOf('of a'), isOver: true } as const
    outbox.again(
      [{ receiver: 'pager', subject, row: withNews(rowOf('of a'), { attempt: over, ends: [] }) }],
      200 * second,
    )
    state = well
    expect(sends(outbox, 320 * second)).toEqual(toldSince ? ['end of a'] : [])
  }
})

test('W4 a run from before a holder read what another node has told does not end that, whatever the clock of that node says', () => {
  const latest = (at: number) => ({ level: 'ok', at, since: 100 * second }) as const
  let state: Present['state'] = { level: 'ok', message: 'fine', depth: 'Basic', latest: latest(195 * second) }
  const outbox = new Outbox(0, (one) => ({ subject: one, state, isSilenced: false }), '@a//svc/receivers')
  outbox.configure([pager], 0)
  // That clock is behind.
  const attempt = { ...wordOf('of b'), observedAt: 20 * second, at: 20 * second, isUnsure: true, isNews: true } as const
  outbox.takeOver(keys, [{ receiver: 'pager', subject, row: { attempt, ends: [] } }], 200 * second)
  expect(sends(outbox, 205 * second)).toEqual([])
  state = { ...state, latest: latest(215 * second) }
  expect(sends(outbox, 215 * second)).toEqual(['end of b'])
})

test('W4 a holder that has read of a fault which another node told learns that its end was told, too', () => {
  const outbox = new Outbox(0, (one) => ({ subject: one, state: well, isSilenced: false }), '@a//svc/receivers')
  outbox.configure([pager], 0)
  // The clock of that node is ahead.
  const attempt = { ...wordOf('of b'), at: 900 * second, isUnsure: true } as const
  const fault = withHandedOver({ ends: [] }, { attempt, ends: [] })
  outbox.again([{ receiver: 'pager', subject, row: fault }], 300 * second)
  const { isUnsure: _, ...word } = attempt
  const over = withHandedOver(fault, { attempt: { ...word, isOver: true }, ends: [] })
  outbox.again([{ receiver: 'pager', subject, row: over }], 302 * second)
  expect(sends(outbox, 320 * second)).toEqual([])
})

test('W4 what stands is told once more after another process has told an end of the same check', () => {
  const state = failing(200 * second, incident('of a', 60 * second))
  const outbox = new Outbox(0, (one) => ({ subject: one, state, isSilenced: false }), '@a//svc/receivers')
  outbox.configure([pager], 0)
  const own = rowOf('of a')
  outbox.takeOver(keys, [{ receiver: 'pager', subject, row: own }], 200 * second)
  const over = { ...wordOf('of b'), isOver: true } as const
  outbox.again([{ receiver: 'pager', subject, row: withHandedOver(own, { attempt: over, ends: [] }) }], 200 * second)
  expect(sends(outbox, 200 * second)).toEqual(['reminder of a'])
  expect(sends(outbox, 300 * second)).toEqual([])
})

test('W4 a holder ends what a node told without the store, although the clock of that node is ahead', () => {
  const latest = { level: 'ok', at: 300 * second, since: 0 } as const
  const state: Present['state'] = { level: 'ok', message: 'fine', depth: 'Basic', latest }
  const outbox = new Outbox(0, (one) => ({ subject: one, state, isSilenced: false }), '@a//svc/receivers')
  outbox.configure([pager], 0)
  const attempt = { ...wordOf('of b'), at: 900 * second, isUnsure: true, isNews: true } as const
  outbox.again([{ receiver: 'pager', subject, row: { attempt, ends: [] } }], 200 * second)
  expect(sends(outbox, 300 * second)).toEqual(['end of b'])
})

test('W4 a node that writes its memory again after a failover deletes a row that says nothing any more', () => {
  const outbox = new Outbox(0, () => 'unknown', '@a//svc/receivers')
  outbox.configure([pager], 0)
  const empty = { receiver: 'pager', subject, row: { ends: [] } }
  outbox.takeOver(keys, [empty], 200 * second)
  expect(outbox.again([empty], 200 * second)).toEqual([{ ...empty, row: undefined }])
})
