import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { text as textOf } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'
import { describe, expect, onTestFinished, test } from 'vitest'
import { NotifyDriver } from '../../../src/core/service/notify/notify-driver.ts'
import { type Notice, receiverKinds } from '../../../src/core/watch/notify/index.ts'
import { type Lookup, Outbox, type Present, type StoredRow } from '../../../src/core/watch/outbox/index.ts'
import type { StoredSubject } from '../../../src/core/watch/states/index.ts'
import { notice, opened, openedProgram, signal } from '../../support/notify/notice.ts'
import { outboxRows } from '../../support/notify/outbox-rows.ts'
import { type ServiceAnswer, serviceRows, settingsAt } from '../../support/notify/service-rows.ts'
import { httpPeer } from '../../support/simulated/http-peer.ts'
import { until } from '../../support/suite/until.ts'

const second = 1_000
const subjectOf = (name: string): StoredSubject => ({
  key: `Sql/${name}`,
  type: 'Sql',
  monitor: name,
  check: 'connect',
})
const failing = (name: string, now: number): Present => ({
  subject: subjectOf(name),
  state: {
    level: 'failed',
    message: 'it is down',
    depth: 'Basic',
    latest: { level: 'failed', at: now, since: 0 },
    incident: {
      id: `${name}-1`,
      beganAt: 0,
      confirmedAt: 0,
      level: 'failed',
      message: 'it is down',
      isFlapping: false,
      isUnobserved: false,
    },
  },
  isSilenced: false,
})

const mailTo = (port: number): string =>
  `{name: mail, email: {server: "smtp://127.0.0.1:${port}", from: svc@svc.test, to: [ops@svc.test]}}`

/** An SMTP server that takes mail, and closes the connection without an answer while `isMute`. */
async function muteSmtp() {
  const mails: { readonly id: string; readonly text: string }[] = []
  let isMute = true
  const server = new SMTPServer({
    disableReverseLookup: true,
    authOptional: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    logger: false,
    onData: (stream, _, done) => {
      void textOf(stream).then((text) => {
        mails.push({ id: /^Message-ID: (.*)$/im.exec(text)?.[1] ?? '', text })
        if (isMute) for (const one of sockets) one.destroy()
        else done()
      })
    },
  })
  const sockets = new Set<{ destroy: () => void }>()
  server.server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  })
  server.on('error', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => await new Promise<void>((resolve) => server.close(resolve)))
  return {
    port: (server.server.address() as AddressInfo).port,
    mails,
    answer: () => {
      isMute = false
    },
  }
}

describe('a message without an answer', () => {
  test('M4 mails without an answer for 100 s have one Message-ID for the same lines, and a minute between them', async () => {
    const smtp = await muteSmtp()
    let now = Date.UTC(2026, 10, 24, 12)
    const names: string[] = []
    const { receiver } = await opened(mailTo(smtp.port), { now: () => now })
    const driver = new NotifyDriver({
      rows: async () => outboxRows(),
      lookup: ({ monitor }) => (names.includes(monitor) ? failing(monitor, now) : 'removed'),
      look: () => {},
      noticeOf: ({ subject: { type, monitor, check }, ...facts }) => notice(facts, { type, monitor, check }),
      now: () => now,
      isHealthy: () => true,
      log: () => {},
    })
    onTestFinished(async () => await driver.close())
    await driver.restore()
    const rules = { name: 'mail', folds: true, remindMs: Number.POSITIVE_INFINITY, accepts: () => true }
    driver.use([{ receiver, rules }])
    const fail = (name: string): void => {
      names.push(name)
      driver.begin([subjectOf(name)], 1_000_000)
    }
    const sentAt: number[] = []
    /** Lets time pass, and each attempt end. */
    const pass = async (seconds: number): Promise<void> => {
      for (let at = 0; at < seconds; at += 1) {
        now += second
        const before = smtp.mails.length
        const attempts = driver.figures()[0]?.results
        driver.tick()
        await new Promise((resolve) => setTimeout(resolve, 5))
        if (smtp.mails.length === before && driver.figures()[0]?.pending === 0) continue
        await new Promise((resolve) => setTimeout(resolve, 5))
        if (smtp.mails.length > before) {
          sentAt.push(now)
          await until(() => JSON.stringify(driver.figures()[0]?.results) !== JSON.stringify(attempts))
        }
      }
    }
    fail('orders')
    await pass(30)
    fail('billing')
    await pass(70)
    fail('stock')
    smtp.answer()
    await pass(200)
    const lines = smtp.mails.map(({ id, text }) => ({
      id,
      names: ['orders', 'billing', 'stock'].filter((name) => new RegExp(`\\b${name}\\b`).test(text)).join(' '),
    }))
    expect(lines.map((one) => one.names)).toEqual(['orders', 'orders', 'billing stock', 'orders'])
    expect(new Set(lines.map(({ id }) => id)).size).toBe(2)
    expect(lines[3]?.id).toBe(lines[0]?.id)
    for (const [at, time] of sentAt.slice(1).entries()) expect(time - (sentAt[at] ?? 0)).toBeGreaterThanOrEqual(60_000)
  })

  test('W23 a change because of an acknowledgement that lapsed is sent again as the same line', () => {
    let now = 0
    let lapsedAcks: readonly string[] = []
    const outbox = new Outbox(0, () => ({ ...failing('orders', now), lapsedAcks }))
    outbox.configure([{ name: 'mail', folds: true, remindMs: Number.POSITIVE_INFINITY, accepts: () => true }], 0)
    outbox.watch(subjectOf('orders'))
    const sends = (isAnswered: boolean) => {
      const at = now
      for (; now < at + 120 * second; now += second) {
        for (const effect of outbox.tick(now).effects) {
          if (effect.type !== 'send') continue
          const lost = { what: 'later', message: 'no answer', isPerhapsReceived: true } as const
          outbox.answered('mail', effect.attempt, isAnswered ? { what: 'accepted' } : lost, now)
          return { message: effect.message, lines: effect.items.map(({ what, id }) => `${what} ${id}`) }
        }
      }
      throw new Error('nothing is sent')
    }
    expect(sends(true).lines).toEqual([expect.stringMatching(/^begin /)])
    lapsedAcks = ['ack-1']
    const change = sends(false)
    expect(change.lines).toEqual([expect.stringMatching(/^change /)])
    expect(sends(true)).toEqual(change)
  })
})

/** An outbox that begins at a second with the lines of a message without an answer. Returns what each tick sends. */
function afterRestart(rows: readonly StoredRow[], at: number, lookup: Lookup) {
  const outbox = new Outbox(at * second, lookup)
  outbox.restore(rows, at * second)
  outbox.configure(
    [{ name: 'mail', folds: true, remindMs: Number.POSITIVE_INFINITY, accepts: () => true }],
    at * second,
  )
  for (const { subject } of rows) outbox.watch(subject)
  return (now: number): readonly string[] =>
    outbox.tick(now * second).effects.flatMap((effect) => {
      if (effect.type !== 'send') return []
      outbox.answered('mail', effect.attempt, { what: 'accepted' }, now * second)
      const lines = effect.items.map(({ what, incident }) => `${what} ${incident}`)
      return `${effect.message.length < 5 ? effect.message : 'new'}: ${lines.join(', ')}`
    })
}
const wordOf = (name: string) =>
  ({
    ...({ incident: `${name}-1`, level: 'failed', isFlapping: false, beganAt: 0 } as const),
    ...{ observedAt: second, at: second },
    line: { message: 'm-1', what: 'begin' },
  }) as const
const endOf = (incident: string) =>
  ({
    ...({ what: 'end', incident, level: 'failed', beganAt: 0, text: 'it ended' } as const),
    ...{ endedAt: second, since: second },
    line: { message: 'm-1', what: 'end' },
  }) as const

test('W23 after a restart, a message is sent again once something is known of all its lines, and what is new before that', () => {
  const rows: readonly StoredRow[] = [
    { receiver: 'mail', subject: subjectOf('orders'), row: { attempt: wordOf('orders'), ends: [] } },
    { receiver: 'mail', subject: subjectOf('billing'), row: { attempt: wordOf('billing'), ends: [] } },
    { receiver: 'mail', subject: subjectOf('stock'), row: { ends: [{ ...endOf('stock-1'), line: undefined }] } },
  ]
  let isKnown = false
  let now = 100
  const sentAt = afterRestart(rows, now, ({ monitor }) =>
    monitor === 'billing' && !isKnown ? 'unknown' : failing(monitor, now * second),
  )
  expect(sentAt(now)).toEqual([expect.stringMatching(/^new: end stock-1/)])
  now += 120
  expect(sentAt(now)).toEqual([])
  isKnown = true
  expect(sentAt(now)).toEqual(['m-1: begin orders-1, begin billing-1'])
})

test('W23 no receiver gets the end before the begin of the next incident while nothing is known of the check', () => {
  const row = { attempt: wordOf('orders'), ends: [endOf('orders-0')], isInDoubt: true } as const
  let present: ReturnType<Lookup> = 'unknown'
  const sentAt = afterRestart([{ receiver: 'mail', subject: subjectOf('orders'), row }], 100, () => present)
  expect(sentAt(100)).toEqual([])
  present = failing('orders', 110 * second)
  expect(sentAt(110)).toEqual(['m-1: end orders-0, begin orders-1'])
})

test('W23 an end that becomes a removal is a new line, and the ends after it follow it', () => {
  const ends = [{ ...endOf('orders-0'), isAssumed: true }, endOf('orders-1')] as const
  const row = { last: { ...wordOf('orders'), incident: 'orders-2', line: undefined }, ends } as const
  const other: StoredRow = { receiver: 'mail', subject: subjectOf('stock'), row: { ends: [endOf('stock-1')] } }
  const sentAt = afterRestart([{ receiver: 'mail', subject: subjectOf('orders'), row }, other], 100, () => 'removed')
  expect([...sentAt(100), ...sentAt(170)]).toEqual([
    'm-1: end stock-1',
    'new: removed orders-0, end orders-1, removed orders-2',
  ])
})

test('W23 a receiver that begins to fail at the time of an earlier failure, because the clock was set back, has another incident', () => {
  let now = 0
  const [first, second] = ['orders-1', 'orders-2'].map((id) => {
    const { subject, state, ...rest } = failing('orders', 0)
    return { ...rest, subject, state: { ...state, incident: state.incident && { ...state.incident, id } } }
  }) as [Present, Present]
  let present = first
  const outbox = new Outbox(0, () => ({
    ...present,
    state: { ...present.state, latest: { level: 'failed', at: now, since: 0 } },
  }))
  const rules = { folds: false, remindMs: Number.POSITIVE_INFINITY, accepts: () => true }
  outbox.configure(
    [
      { ...rules, name: 'mail' },
      { ...rules, name: 'chat' },
    ],
    now,
  )
  outbox.watch(present.subject)
  const lines: string[] = []
  /** Ticks at these times, in seconds. Mail accepts everything, and chat only while it works. */
  const tickAt = (times: readonly number[], works: boolean): void => {
    for (const at of times) {
      now = at * 1_000
      for (const effect of outbox.tick(now).effects) {
        if (effect.type !== 'send') continue
        const isWell = effect.receiver === 'mail' || works
        for (const { what, incident, subject: of } of effect.items)
          if (of.item === 'chat') lines.push(`${what} ${incident}`)
        const later = { what: 'later', message: 'it is down', isPerhapsReceived: false } as const
        outbox.answered(effect.receiver, effect.attempt, isWell ? { what: 'accepted' } : later, now)
      }
    }
  }
  tickAt([0, 700, 701], false)
  tickAt([1_100, 1_101], true)
  const move = (at: number): number => at - 1_200_000
  outbox.shift({ ms: -1_200_000, errorMs: -1_200_000, move, correct: move })
  present = second
  tickAt([0, 700, 701], false)
  const [begin, end, next] = lines
  expect([end, next?.split(' ')[0]]).toEqual([begin?.replace('begin', 'end'), 'begin'])
  expect(next).not.toBe(begin)
})

/** Sends a message, and resolves with the text that the other end of the receiver gets. */
type Sent = (notices: readonly Notice[], message: string) => Promise<string>

const overHttp = async (
  yaml: (origin: string) => string,
  env: (origin: string) => Readonly<Record<string, string>> = () => ({}),
  answer: ServiceAnswer = { status: 200, body: [] },
): Promise<Sent> => {
  let got = ''
  const peer = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      got = `${String(request.headers['webhook-id'])} ${request.url} ${body}`
      const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body)
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text)
    })
  })
  onTestFinished(async () => await peer[Symbol.asyncDispose]())
  const { receiver } = await opened(yaml(peer.origin), { env: env(peer.origin) })
  return async (notices, message) => {
    expect(await receiver.send(notices, signal(), message)).toMatchObject({ what: 'accepted' })
    return got
  }
}

type Kind = {
  readonly by: RegExp
  readonly isOfMessage: boolean
  readonly sendsEach?: boolean
  readonly sent: () => Promise<Sent>
}
const byKey: Pick<Kind, 'by' | 'isOfMessage' | 'sendsEach'> = {
  by: /"(?:dedup_key|alias)":"[0-9a-f]+"/,
  isOfMessage: false,
  sendsEach: true,
}

/** The mark by which the other end of a service recognizes a repetition. Of the others, a person does, by the incident. */
const services: Readonly<Record<string, Pick<Kind, 'by' | 'isOfMessage' | 'sendsEach'>>> = {
  matrix: { by: /svc_[0-9a-f]{32}/, isOfMessage: true },
  googlechat: { by: /"threadKey":"[0-9a-f]+"/, isOfMessage: false },
  pagerduty: byKey,
  jsm: byKey,
  opsgenie: byKey,
}

/** By the name of the kind: what its other end recognizes a repetition by, and how it gets a message. */
const kinds: Readonly<Record<string, Kind>> = {
  alertmanager: {
    by: /"labels":\{[^}]*\}/,
    isOfMessage: false,
    sent: async () => await overHttp((origin) => `{name: am, alertmanager: {urls: ["${origin}"]}}`),
  },
  webhook: {
    by: /svc_[0-9a-f]{32}/,
    isOfMessage: true,
    sent: async () => await overHttp((origin) => `{name: chat, webhook: {url: "${origin}/hook"}}`),
  },
  email: {
    by: /Message-ID: \S+/i,
    isOfMessage: true,
    sent: async () => {
      const smtp = await muteSmtp()
      smtp.answer()
      const { receiver } = await opened(mailTo(smtp.port))
      return async (notices, message) => {
        expect(await receiver.send(notices, signal(), message)).toMatchObject({ what: 'accepted' })
        return smtp.mails.at(-1)?.text ?? ''
      }
    },
  },
  exec: {
    by: /"fingerprint":"[0-9a-f]+"/,
    isOfMessage: false,
    sent: async () => {
      const { receiver, allowed } = await openedProgram(`cat > "$(dirname "$0")/got"`)
      return async (notices, message) => {
        expect(await receiver.send(notices, signal(), message)).toMatchObject({ what: 'accepted' })
        return readFileSync(`${allowed}/got`, 'utf8')
      }
    },
  },
  ...Object.fromEntries(
    Object.entries(serviceRows).map(([name, { env, accepts }]): [string, Kind] => [
      name,
      {
        ...(services[name] ?? { by: /incident[ +]i1/, isOfMessage: false }),
        sent: async () =>
          await overHttp((origin) => JSON.stringify({ name: 'r', [name]: settingsAt(name, origin) }), env, accepts),
      },
    ]),
  ),
}

test.each(receiverKinds.map(({ name }) => name))(
  'M1 the other end of %s recognizes a message that is sent again, also if a line of it no longer holds',
  async (name) => {
    const kind = kinds[name]
    if (!kind) throw new Error(`${name} has no row`)
    const sent = await kind.sent()
    const [one, other] = [notice({ id: 'n-1' }), notice({ id: 'n-2' }, { monitor: 'other' })]
    const recognizedBy = async (notices: readonly Notice[], message: string): Promise<string> =>
      kind.by.exec(await sent(notices, message))?.[0] ?? 'nothing'
    const first = await recognizedBy([one, other], 'm-1')
    expect(first).not.toBe('nothing')
    // Of a kind that sends each notice alone, the last message is that of the other.
    const left = kind.sendsEach === true ? other : one
    expect(await recognizedBy([left], 'm-1')).toBe(first)
    expect((await recognizedBy([left], 'm-2')) === first).toBe(!kind.isOfMessage)
  },
)
