import type { IncomingMessage, RequestListener } from 'node:http'
import { text as textOf } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { NotifyDriver } from '../../../src/core/service/notify/notify-driver.ts'
import type { OutboxRows, Present } from '../../../src/core/watch/outbox/index.ts'
import type { Incident, StoredSubject } from '../../../src/core/watch/states/index.ts'
import { httpPeer } from '../simulated/http-peer.ts'
import { notice, opened } from './notice.ts'
import type { ServiceAnswer } from './service-rows.ts'

export const second = 1_000
export const minute = 60 * second
export const hour = 60 * minute

export const subjectOf = (name: string): StoredSubject => ({
  key: `Sql/${name}`,
  type: 'Sql',
  monitor: name,
  check: 'connect',
})

/**
 * Monitors that fail and recover as the test says, a clock that it moves, and a driver with a receiver on a real HTTP server:
 * a webhook, unless told otherwise.
 */
export async function drivenReceiver({
  rows,
  answer,
  storeStates,
  yaml = (origin) => `{name: chat, webhook: {url: "${origin}/hook"}}`,
  env = () => ({}),
  accepts = { status: 204, body: '' },
}: {
  rows?: OutboxRows
  /** Absent, or undefined: it accepts. */
  answer?: (request: IncomingMessage, body: string) => RequestListener | undefined
  storeStates?: () => Promise<void>
  yaml?: (origin: string) => string
  env?: (origin: string) => Readonly<Record<string, string>>
  accepts?: ServiceAnswer
} = {}) {
  let now = Date.UTC(2026, 10, 24, 12)
  const bodies: string[] = []
  const peer = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      const other = answer?.(request, body)
      if (other) other(request, response)
      else {
        bodies.push(body)
        const { status, body: reply } = accepts
        response.writeHead(status).end(typeof reply === 'string' ? reply : JSON.stringify(reply))
      }
    })
  })
  const states = new Map<string, Present>()
  const logs: string[] = []
  const looks: string[] = []
  const start = async (store: OutboxRows | undefined = rows): Promise<NotifyDriver> => {
    const { receiver } = await opened(yaml(peer.origin), { env: env(peer.origin), now: () => now })
    const driver = new NotifyDriver({
      rows: store && (async () => store),
      storeStates,
      lookup: (subject) => states.get(subject.monitor) ?? 'removed',
      look: (key) => {
        looks.push(key)
        const state = states.get(key.slice(4))
        if (state?.state.latest) show(state.subject.monitor, state.state.incident)
      },
      noticeOf: ({ subject: { type, monitor, check }, text, ...facts }, marks) =>
        notice({ ...facts, text: [text, ...marks].join(' ') }, { type, monitor, check }),
      now: () => now,
      steady: () => now,
      isHealthy: () => true,
      log: ({ msg }) => void logs.push(msg),
    })
    await driver.restore()
    driver.use([
      {
        receiver,
        rules: {
          name: 'chat',
          folds: receiver.sendsEach !== true,
          remindMs: Number.POSITIVE_INFINITY,
          accepts: () => true,
        },
      },
    ])
    onTestFinished(async () => await driver.close())
    return driver
  }
  const show = (name: string, incident: Incident | undefined): void => {
    const level: 'ok' | 'warning' | 'failed' = incident?.level ?? 'ok'
    const latest = { level, at: now, since: now }
    states.set(name, {
      subject: subjectOf(name),
      state: { level, incident, latest, message: level, depth: 'Basic' },
      isSilenced: false,
    })
  }
  const fail = (driver: NotifyDriver, name: string): void => {
    const facts = { level: 'failed', message: 'it is down', isFlapping: false, isUnobserved: false } as const
    show(name, { id: `${name}-1`, beganAt: now - 20 * second, confirmedAt: now, ...facts })
    report(driver, name, 'begin')
  }
  const recover = (driver: NotifyDriver, name: string): void => {
    show(name, undefined)
    report(driver, name, 'end')
  }
  const report = (driver: NotifyDriver, name: string, what: 'begin' | 'end'): void => {
    const [from, to] = what === 'begin' ? (['ok', 'failed'] as const) : (['failed', 'ok'] as const)
    const times = { at: now, confirmedAt: now, depth: 'Basic', message: what } as const
    driver.transition({ what, from, to, ...subjectOf(name), incident: `${name}-1`, ...times })
    driver.tick()
  }
  onTestFinished(async () => await peer[Symbol.asyncDispose]())
  return {
    ...{ start, fail, recover, show, bodies, logs, looks, peer },
    now: () => now,
    /** Moves the clock, and lets the driver look. */
    pass: (driver: NotifyDriver, ms: number): void => {
      now += ms
      driver.tick()
    },
  }
}
