import { describe, expect, onTestFinished, test } from 'vitest'
import { NotifyDriver } from '../../../src/core/service/notify/notify-driver.ts'
import { SentWithoutStore } from '../../../src/core/service/notify/sent-without-store.ts'
import type { PrivateFile } from '../../../src/core/service/part.ts'
import type { Receiver } from '../../../src/core/watch/notify/index.ts'
import {
  headOf,
  linesOf,
  mostLines,
  type NoticeItem,
  Outbox,
  type OutboxRow,
  type OutboxRows,
  type Present,
  rowsOfSent,
  type StoredRow,
  withNews,
  withoutSentEnds,
} from '../../../src/core/watch/outbox/index.ts'
import { afterAccepted } from '../../../src/core/watch/outbox/row.ts'
import type { Incident, StoredSubject } from '../../../src/core/watch/states/index.ts'
import { notice } from '../../support/notify/notice.ts'
import { outboxRows } from '../../support/notify/outbox-rows.ts'
import { until } from '../../support/suite/until.ts'

const second = 1_000
const day = 86_400 * second
const subject: StoredSubject = { key: 'Sql/orders', type: 'Sql', monitor: 'orders', check: 'connect' }
const incidentAt = (id: string, beganAt: number): Incident => ({
  id,
  beganAt,
  confirmedAt: beganAt,
  level: 'failed',
  message: 'it is down',
  isFlapping: false,
  isUnobserved: false,
})

/** A file that outlives the processes of a test. `problem`: why it cannot be used. */
function fileInMemory() {
  const file = { text: undefined as string | undefined, problem: undefined as string | undefined }
  const fails = (): void => {
    if (file.problem !== undefined) throw new Error(file.problem)
  }
  const own: PrivateFile = {
    path: '/state/told-a.jsonl',
    read: async () => {
      fails()
      return file.text
    },
    append: async (text) => {
      fails()
      file.text = `${file.text ?? ''}${text}`
    },
    remove: async () => {
      file.text = undefined
    },
  }
  return { file, own }
}

/** Processes one after the other on one store, with one receiver, and a clock that the test moves. */
function processes() {
  let now = Date.UTC(2026, 10, 24, 12)
  const rows = outboxRows()
  let isAway = false
  const store: OutboxRows = {
    read: async () => {
      if (isAway) throw new Error('the store is away')
      return await rows.read()
    },
    write: async (some) => {
      if (isAway) throw new Error('the store is away')
      await rows.write(some)
    },
  }
  const { file, own } = fileInMemory()
  const got: string[] = []
  const logs: string[] = []
  /** The file when a message left. */
  const filed: (string | undefined)[] = []
  const receiver: Receiver = {
    describe: () => ({ name: 'pager', kind: 'test', to: 'nowhere' }),
    send: async (notices) => {
      filed.push(file.text)
      got.push(...notices.map(({ what, incident, endedAt }) => `${what} ${incident}${endedAt ? ` ${endedAt}` : ''}`))
      return { what: 'accepted' }
    },
    close: async () => {},
  }
  let present: Present['state'] = {
    level: 'ok',
    message: 'fine',
    depth: 'Basic',
    latest: { level: 'ok', at: 0, since: 0 },
  }
  const log = ({ msg }: { readonly msg: string }): void => void logs.push(msg)
  const start = async (): Promise<NotifyDriver> => {
    const sentWithoutStore = new SentWithoutStore({
      file: own,
      node: 'a',
      storeId: async () => {
        if (isAway) throw new Error('the store is away')
        return 'store-1'
      },
      now: () => now,
      log,
    })
    const driver = new NotifyDriver({
      rows: async () => store,
      sentWithoutStore,
      lookup: (one) => ({ subject: one, state: present, isSilenced: false }),
      look: () => {},
      noticeOf: ({ subject: { type, monitor, check }, ...facts }) => notice(facts, { type, monitor, check }),
      now: () => now,
      isHealthy: () => true,
      log,
    })
    await driver.restore()
    const rules = { name: 'pager', folds: false, remindMs: Number.POSITIVE_INFINITY, accepts: () => true }
    driver.use([{ receiver, rules }])
    driver.begin(present.incident ? [subject] : [], 1_000_000)
    onTestFinished(async () => await driver.close())
    return driver
  }
  const settle = async (): Promise<void> => await new Promise((resolve) => setTimeout(resolve, 2))
  return {
    ...{ start, file, got, logs, filed, rows, settle },
    now: () => now,
    away: (is: boolean) => {
      isAway = is
    },
    fails: (id: string) => {
      const latest = { level: 'failed', at: now, since: now } as const
      present = { level: 'failed', message: 'it is down', depth: 'Basic', latest, incident: incidentAt(id, now) }
    },
    /** Lets time pass, in which a run shows the present state each second. */
    pass: async (driver: NotifyDriver, seconds: number) => {
      for (let at = 0; at < seconds; at += 1) {
        now += second
        const { latest } = present
        if (latest) present = { ...present, latest: { ...latest, at: now } }
        driver.tick()
        await settle()
      }
    },
    recovers: () => {
      present = { level: 'ok', message: 'fine', depth: 'Basic', latest: { level: 'ok', at: now, since: now } }
    },
    transition: (driver: NotifyDriver, what: 'begin' | 'end', incident: string) => {
      const [from, to] = what === 'begin' ? (['ok', 'failed'] as const) : (['failed', 'ok'] as const)
      driver.transition({
        what,
        from,
        to,
        ...subject,
        incident,
        at: now,
        confirmedAt: now,
        depth: 'Basic',
        message: what,
      })
      driver.tick()
    },
  }
}

describe('what a process sends without the store', () => {
  test.each(['SIGTERM', 'SIGKILL'])(
    'W23 gets its end from the process after a %s, although that one never knew the fault',
    async (signal) => {
      const fixture = processes()
      const first = await fixture.start()
      fixture.away(true)
      fixture.fails('i-1')
      fixture.transition(first, 'begin', 'i-1')
      await fixture.pass(first, 70)
      expect(fixture.got).toEqual(['begin i-1'])
      // It was in the file before it left.
      expect(fixture.filed[0]).toContain('"incident":"i-1"')
      if (signal === 'SIGTERM') await first.close()
      else first.cancel()
      const next = await fixture.start()
      fixture.recovers()
      await fixture.pass(next, 20)
      expect(fixture.got).toEqual(['begin i-1'])
      fixture.away(false)
      await until(async () => {
        await fixture.pass(next, 1)
        return fixture.got.length > 1
      })
      await fixture.pass(next, 30)
      expect(fixture.got).toEqual(['begin i-1', expect.stringMatching(/^end i-1 \d+$/)])
      await until(() => fixture.file.text === undefined)
      expect(fixture.rows.all()).toEqual([])
    },
  )

  test('W23 an end that left without the store, of an incident that the store knows, comes once', async () => {
    const fixture = processes()
    const first = await fixture.start()
    fixture.fails('i-1')
    fixture.transition(first, 'begin', 'i-1')
    await fixture.pass(first, 5)
    fixture.away(true)
    const open = fixture.fails
    fixture.recovers()
    fixture.transition(first, 'end', 'i-1')
    await fixture.pass(first, 70)
    expect(fixture.got).toEqual(['begin i-1', expect.stringMatching(/^end i-1 \d+$/)])
    first.cancel()
    fixture.away(false)
    // The store has the state of before, so that the next process confirms the recovery once more.
    open('i-1')
    const next = await fixture.start()
    fixture.recovers()
    fixture.transition(next, 'end', 'i-1')
    await fixture.pass(next, 30)
    expect(fixture.got).toHaveLength(2)
    await until(() => fixture.file.text === undefined && fixture.rows.all().length === 0)
  })

  test('W23 leaves also where the file cannot be used, and the log says why', async () => {
    const fixture = processes()
    const first = await fixture.start()
    fixture.file.problem = '/state/told-a.jsonl has the wrong owner'
    fixture.away(true)
    fixture.fails('i-1')
    fixture.transition(first, 'begin', 'i-1')
    await fixture.pass(first, 70)
    expect(fixture.got).toEqual(['begin i-1'])
    expect(fixture.logs.filter((line) => line.includes('wrong owner'))).toHaveLength(1)
  })

  test('W23 what the file has too much is not written, with a warning', async () => {
    const { file, own } = fileInMemory()
    const logs: string[] = []
    const sent = new SentWithoutStore({
      file: own,
      node: 'a',
      storeId: async () => 'store-1',
      log: ({ msg }) => void logs.push(msg),
    })
    const item = {
      id: 'n',
      subject,
      what: 'begin',
      level: 'failed',
      incident: 'i',
      beganAt: 0,
      observedAt: 0,
      text: '',
    }
    // The first line says whose it is.
    const items = Array.from({ length: mostLines - 1 }, (_, at) => ({ ...item, incident: `i-${at}` }) as NoticeItem)
    await sent.note('pager', items)
    const size = file.text?.length
    await sent.note('pager', items.slice(0, 1))
    expect(file.text?.length).toBe(size)
    expect(logs).toEqual([expect.stringContaining('it is full')])
  })
})

describe('a receiver that forgets', () => {
  const now = 100 * second
  const incident = incidentAt('i-1', 50 * second)
  const present: Present = {
    subject,
    state: {
      level: 'failed',
      message: 'it is down',
      depth: 'Basic',
      latest: { level: 'failed', at: now, since: 0 },
      incident,
    },
    isSilenced: false,
  }
  const rules = { name: 'am', folds: false, remindMs: Number.POSITIVE_INFINITY, accepts: () => true }
  const word = {
    incident: 'i-1',
    level: 'failed',
    isFlapping: false,
    beganAt: 50 * second,
    observedAt: 60 * second,
    at: 60 * second,
  } as const

  test('W23 is not told again what it knows to be over', () => {
    const outbox = new Outbox(now, () => present)
    outbox.restore([{ receiver: 'am', subject, row: { last: { ...word, isOver: true }, ends: [] } }], now)
    outbox.configure([rules], now)
    expect(outbox.openFor('am')).toEqual([])
  })

  test('W23 is told nothing that waits for the store, and then what it accepted', () => {
    const outbox = new Outbox(now, () => present)
    outbox.configure([rules], now)
    outbox.watch(subject)
    const sent = outbox.tick(now).effects.flatMap((effect) => (effect.type === 'send' ? [effect.attempt] : []))
    expect(sent).toHaveLength(1)
    expect(outbox.openFor('am')).toEqual([])
    outbox.answered('am', sent[0] ?? 0, { what: 'accepted' }, now)
    expect(outbox.openFor('am').map((one) => one.incident)).toEqual(['i-1'])
  })
})

test('W23 lines of another store, of more than seven days and damaged ones are passed over and counted', () => {
  const head = JSON.stringify({ format: 'svc sent without store 1', store: 'store-1', node: 'a' })
  const line = (incident: string, at: number): string =>
    JSON.stringify({ receiver: 'pager', incident, subject, level: 'failed', beganAt: at, at })
  const now = 10 * day
  const text = [head, line('old', 2 * day), line('young', 9 * day), '{"receiver":"pa', '7', ''].join('\n')
  const { rows, passedOver } = rowsOfSent(text, { store: 'store-1', node: 'a', now })
  expect(rows.map(({ row }) => row?.attempt?.incident)).toEqual(['young'])
  expect(passedOver).toBe(3)
  expect(rowsOfSent(text, { store: 'store-2', node: 'a', now })).toEqual({ rows: [], passedOver: 4 })
  expect(rowsOfSent(text, { store: 'store-1', node: 'b', now })).toEqual({ rows: [], passedOver: 4 })
})

test('W23 the end of a fault of a receiver that one of the others got without the store is told the rest, and begins for nobody', () => {
  const broken: StoredSubject = { key: '/svc/receivers', monitor: 'svc', check: 'receiver', item: 'mail' }
  const line = (receiver: string, level: 'ok' | 'failed', isTried?: true): string =>
    JSON.stringify({ receiver, incident: 'mail-1', subject: broken, level, beganAt: 0, at: day, isTried })
  const head = JSON.stringify({ format: 'svc sent without store 1', store: 'store-1', node: 'a' })
  const word = { incident: 'mail-1', level: 'failed', isFlapping: false, beganAt: 0, observedAt: 0, at: 1 } as const
  const messagesAfter = (stored: readonly StoredRow[], lines: readonly string[]): readonly string[] => {
    const { rows } = rowsOfSent([head, ...lines].join('\n'), { store: 'store-1', node: 'a', now: 2 * day })
    const all = new Map(stored.map((one) => [one.receiver, one]))
    for (const one of rows) {
      const before = all.get(one.receiver)?.row
      const row = one.row && (before ? withNews(before, one.row, true) : withoutSentEnds(one.row))
      if (row) all.set(one.receiver, { ...one, row })
    }
    const outbox = new Outbox(2 * day, () => 'removed')
    const rules = { folds: false, remindMs: Number.POSITIVE_INFINITY, accepts: () => true }
    outbox.restore([...all.values()], 2 * day)
    outbox.configure(
      ['pager', 'chat', 'mail'].map((name) => ({ ...rules, name })),
      2 * day,
    )
    return outbox
      .tick(2 * day)
      .effects.flatMap((effect) =>
        effect.type === 'send' ? effect.items.map(({ what }) => `${effect.receiver} ${what}`) : [],
      )
  }
  const lines = [line('pager', 'failed'), line('chat', 'failed'), line('pager', 'ok')]
  expect(messagesAfter([], lines)).toEqual(['chat end'])
  // Killed before the answer of pager, svc does not know whether that has got the end.
  expect(messagesAfter([], [...lines.slice(0, 2), line('pager', 'ok', true)])).toEqual(['pager end', 'chat end'])
  expect(messagesAfter([], [...lines, line('chat', 'ok', true), line('chat', 'ok')])).toEqual([])
  const stored = ['pager', 'chat'].map((receiver) => ({ receiver, subject: broken, row: { last: word, ends: [] } }))
  expect(messagesAfter(stored, [line('pager', 'ok')])).toEqual(['chat end'])
  expect(messagesAfter(stored, [line('pager', 'ok', true)])).toEqual(['pager end', 'chat end'])
  // The store knows only that both have to be told.
  const need = { incident: 'mail-1', level: 'failed', beganAt: 0, since: 0 } as const
  const needed = ['pager', 'chat'].map((receiver) => ({ receiver, subject: broken, row: { need, ends: [] } }))
  expect(messagesAfter(needed, [line('pager', 'failed'), line('pager', 'ok')])).toEqual(['chat end'])
  const unanswered = [...lines.slice(0, 2), line('pager', 'ok', true)]
  expect(messagesAfter(needed, unanswered)).toEqual(['pager end', 'chat end'])
})

test('W23 of two incidents of a check that a process told without the store, the next process sends the end of the earlier one', () => {
  const head = JSON.stringify({ format: 'svc sent without store 1', store: 'store-1', node: 'a' })
  const line = (incident: string, level: 'ok' | 'failed', beganAt: number): string =>
    JSON.stringify({ receiver: 'pager', incident, subject, level, beganAt, at: beganAt + 5 })
  const rowOf = (...lines: readonly string[]): OutboxRow | undefined =>
    rowsOfSent(lines.join('\n'), { store: 'store-1', node: 'a', now: day }).rows[0]?.row
  const one = [head, line('i-1', 'failed', 10), line('i-2', 'failed', 20)]
  const ends = [{ incident: 'i-1', what: 'end', endedAt: 20, isAssumed: true }]
  const row = rowOf(...one)
  expect(row).toMatchObject({ attempt: { incident: 'i-2' }, ends })
  expect(row?.others).toBeUndefined()
  // Nobody must believe after that end that the check is well.
  expect(row && withoutSentEnds(row)).toMatchObject({ attempt: { incident: 'i-2' }, ends, isInDoubt: true })
  // The answer to the message with both has arrived.
  expect(rowOf(...one, line('i-1', 'ok', 10))).toMatchObject({ ends: [], others: [{ incident: 'i-1', isOver: true }] })
  // Another process knew nothing of the first one, which may be the same fault.
  expect(rowOf(head, line('i-1', 'failed', 10), head, line('i-2', 'failed', 20))).toMatchObject({
    ...{ ends: [], attempt: { incident: 'i-2' }, others: [{ incident: 'i-1' }] },
  })
})

test('W23 a receiver that got another level of another incident without the store is told how the incident is now', () => {
  const head = JSON.stringify({ format: 'svc sent without store 1', store: 'store-1', node: 'a' })
  const line = { receiver: 'pager', incident: 'i-2', subject, beganAt: 15, at: 20 }
  const last = { incident: 'i-1', level: 'warning', isFlapping: false, beganAt: 0, observedAt: 0, at: 10 } as const
  const isInDoubtAfter = (level: 'warning' | 'failed', at = 20): boolean | undefined => {
    const text = [head, JSON.stringify({ ...line, level, at })].join('\n')
    const [sent] = rowsOfSent(text, { store: 'store-1', node: 'a', now: day }).rows
    return sent?.row && withNews({ last, ends: [] }, sent.row).isInDoubt
  }
  expect(isInDoubtAfter('failed')).toBe(true)
  expect([isInDoubtAfter('warning'), isInDoubtAfter('failed', 5)]).toEqual([undefined, undefined])
})

test('W23 what a receiver got the end of without the store, and then perhaps once more, ends for it once more', () => {
  const word = { incident: 'i-1', level: 'failed', isFlapping: false, beganAt: 0, observedAt: 0, at: 10 } as const
  const endsAfter = (row: OutboxRow): readonly unknown[] => {
    const outbox = new Outbox(day, () => 'removed')
    outbox.restore([{ receiver: 'pager', subject, row }], day)
    outbox.configure([{ name: 'pager', folds: false, remindMs: Number.POSITIVE_INFINITY, accepts: () => true }], day)
    return outbox.tick(day).effects.flatMap((effect) => (effect.type === 'send' ? effect.items : []))
  }
  const last = { ...word, isOver: true } as const
  expect(endsAfter({ last, ends: [] })).toEqual([])
  const again = { ...word, at: 20, isUnsure: true } as const
  expect(withNews({ last, ends: [] }, { attempt: again, ends: [] }).attempt).toEqual(again)
  expect(endsAfter({ last, attempt: { ...word, at: 20 }, ends: [] })).toMatchObject([
    { incident: 'i-1', what: 'removed' },
  ])
})

test('W23 an end is noted before it leaves and once it is accepted', () => {
  const item = (key: string, endedAt?: number): NoticeItem => ({
    ...{ id: key, incident: key, subject: { key, monitor: 'm', check: 'c' }, level: 'failed', text: 't' },
    ...{ what: endedAt === undefined ? 'begin' : 'end', beganAt: 0, observedAt: 0, endedAt },
  })
  const items = [item('begun'), item('over', 1), item('/svc/receivers', 1)]
  const noted = (isAccepted: boolean): readonly string[] =>
    linesOf('pager', items, 1, isAccepted).map((text) => {
      const { incident, level, isTried = false } = JSON.parse(text) as Record<string, unknown>
      return `${String(incident)} ${String(level)} ${String(isTried)}`
    })
  expect(noted(false)).toEqual(['begun failed false', 'over ok true', '/svc/receivers ok true'])
  expect(noted(true)).toEqual(['over ok false', '/svc/receivers ok false'])
})

test('W23 an end that a process saw has its time, although the store is read later with what that process sent', () => {
  const word = { level: 'failed', isFlapping: false, beganAt: 0, observedAt: 0, at: 5 } as const
  const sent = { ...word, incident: 'i-2', isUnsure: true } as const
  const end = { what: 'end', incident: 'i-2', level: 'failed', beganAt: 0, endedAt: 10, text: 'fine' } as const
  const rowsAfter = (row: OutboxRow): readonly unknown[] => {
    const outbox = new Outbox(day, () => 'unknown')
    outbox.configure([{ name: 'pager', folds: false, remindMs: Number.POSITIVE_INFINITY, accepts: () => true }], day)
    outbox.restore([{ receiver: 'pager', subject, row: { ends: [end] } }], day)
    outbox.restore([{ receiver: 'pager', subject, row }], day)
    return outbox.rows().map((one) => ({ others: one.row?.others, ...one.row }))
  }
  const last = { ...word, incident: 'i-1' }
  const ends = [{ incident: 'i-2', endedAt: 10 }]
  expect(rowsAfter({ last, ends: [], others: [sent] })).toMatchObject([{ last, ends, others: undefined }])
  expect(rowsAfter({ attempt: sent, ends: [], others: [last] })).toMatchObject([{ last, ends, others: undefined }])
})

test('W23 an end that follows what was accepted comes with it once more', () => {
  const word = { incident: 'i-2', level: 'failed', isFlapping: false, beganAt: 20, observedAt: 20, at: 20 } as const
  const end = { what: 'end', incident: 'i-1', level: 'failed', beganAt: 0, endedAt: 10, text: 'fine' } as const
  const row: OutboxRow = { attempt: word, ends: [end], isInDoubt: true }
  const after = (ends: OutboxRow['ends']): OutboxRow => afterAccepted(row, { ends, word, before: { ends: [] } })
  expect([after([]).isInDoubt, after([end]).isInDoubt]).toEqual([true, undefined])
})

test('W23 a receiver that perhaps got an end without the store is told if the fault stands', () => {
  const incident = { ...incidentAt('i-1', 0), level: 'warning' } as const
  const last = { incident: 'i-1', level: 'warning', isFlapping: false, beganAt: 0, observedAt: 0, at: 10 } as const
  const end = {
    id: 'e',
    what: 'end',
    level: 'warning',
    incident: 'i-1',
    beganAt: 0,
    endedAt: 20,
    observedAt: 20,
  } as const
  const text = [headOf('store-1', 'a'), ...linesOf('pager', [{ ...end, subject, text: 'fine' }], 20)].join('')
  const [sent] = rowsOfSent(text, { store: 'store-1', node: 'a', now: day }).rows
  const latest = { level: 'warning', at: day, since: 0 } as const
  const state = { level: 'warning', message: 'slow', depth: 'Basic', latest, incident } as const
  const outbox = new Outbox(day, (one) => ({ subject: one, state, isSilenced: false }))
  outbox.restore([{ receiver: 'pager', subject, row: withNews({ last, ends: [] }, sent?.row ?? { ends: [] }) }], day)
  outbox.configure([{ name: 'pager', folds: false, remindMs: Number.POSITIVE_INFINITY, accepts: () => true }], day)
  const items = outbox.tick(day).effects.flatMap((effect) => (effect.type === 'send' ? effect.items : []))
  expect(items.map(({ what, level }) => `${what} ${level}`)).toEqual(['reminder warning'])
})

test('W23 a receiver that perhaps got a change without the store is told how the incident is now', () => {
  const head = JSON.stringify({ format: 'svc sent without store 1', store: 'store-1', node: 'a' })
  const line = (level: 'ok' | 'failed', at: number): string =>
    JSON.stringify({ receiver: 'pager', incident: 'i-1', subject, level, beganAt: 0, at })
  const last = { incident: 'i-1', level: 'warning', isFlapping: false, beganAt: 0, observedAt: 0, at: 10 } as const
  const rowAfter = (...lines: readonly string[]) => {
    const [sent] = rowsOfSent([head, ...lines].join('\n'), { store: 'store-1', node: 'a', now: day }).rows
    return sent?.row && withNews({ last, ends: [] }, sent.row)
  }
  expect(rowAfter(line('failed', 20))).toMatchObject({ last, attempt: { incident: 'i-1', level: 'failed' } })
  // It went on after an end that left without the store.
  const [again] = rowsOfSent([head, line('failed', 20)].join('\n'), { store: 'store-1', node: 'a', now: day }).rows
  const over = { last: { ...last, isOver: true }, ends: [] } as const
  expect(again?.row && withNews(over, again.row)).toMatchObject({ attempt: { incident: 'i-1', at: 20 } })
  // The store has what came later, and the end of an incident counts more.
  expect(rowAfter(line('failed', 5))).toEqual({ last, ends: [] })
  expect(rowAfter(line('failed', 20), line('ok', 30))).toMatchObject({ last: { isOver: true } })
})
