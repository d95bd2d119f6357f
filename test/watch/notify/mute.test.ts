import { expect, onTestFinished, test } from 'vitest'
import { NotifyDriver } from '../../../src/core/service/notify/notify-driver.ts'
import type { Mute, MuteFailure, Notice, Receiver } from '../../../src/core/watch/notify/index.ts'
import type { Incident, StoredSubject } from '../../../src/core/watch/states/index.ts'
import { notice, opened, signal } from '../../support/notify/notice.ts'
import { httpPeer } from '../../support/simulated/http-peer.ts'
import { until } from '../../support/suite/until.ts'

const subject: StoredSubject = { key: 'Sql/orders', type: 'Sql', monitor: 'orders', check: 'connect' }
const muted = (id: string): Mute => ({
  ...{ id, what: 'silence', targets: [{ pattern: `postgres ${id}` }], by: 'alice', reason: 'patch night' },
  ...{ from: Date.now() - 1_000, until: Date.now() + 3_600_000 },
})

/** A driver with a simulated receiver whose `mute` answers when the test says so. */
function started(waitMs: number) {
  const sent: Notice[] = []
  const lists: string[] = []
  const answers: ((failures: readonly MuteFailure[]) => void)[] = []
  let mutes: readonly Mute[] = [muted('a')]
  const receiver: Receiver = {
    describe: () => ({ name: 'am', kind: 'alertmanager', to: 'http://am:9093' }),
    send: async (notices) => {
      sent.push(...notices)
      return { what: 'accepted' }
    },
    mute: async (list) => {
      lists.push(list.map(({ id }) => id).join(' '))
      return await new Promise((resolve) => {
        answers.push(resolve)
      })
    },
    close: async () => {},
  }
  const incident: Incident = {
    ...{ id: 'i1', beganAt: Date.now(), confirmedAt: Date.now(), level: 'failed', message: 'refused' },
    ...{ isFlapping: false, isUnobserved: true },
  }
  const latest = { level: 'failed', at: Date.now(), since: Date.now() } as const
  const driver = new NotifyDriver({
    rows: undefined,
    lookup: () => ({
      subject,
      state: { level: 'failed', incident, latest, message: 'refused', depth: 'Basic' },
      isSilenced: false,
    }),
    look: () => {},
    noticeOf: ({ text }) => notice({ text }),
    mutes: () => mutes,
    muteWaitMs: waitMs,
    now: Date.now,
    isHealthy: () => true,
    log: () => {},
  })
  const rules = { name: 'am', folds: false, remindMs: Number.POSITIVE_INFINITY, accepts: () => true }
  driver.use([{ receiver, rules }])
  onTestFinished(async () => await driver.close())
  return {
    ...{ driver, sent, lists, answers },
    set: (ids: readonly string[]): void => {
      mutes = ids.map(muted)
    },
    fail: (): void => {
      driver.begin([subject], 60_000)
      driver.tick()
    },
  }
}

test('M10 a message waits for silences only for a while, also of a simulated receiver whose silences hang', async () => {
  const { fail, lists, sent } = started(50)
  fail()
  await until(() => sent.length === 1)
  expect(lists).toEqual(['a'])
})

test('M10 a command learns which simulated receiver does not answer in time', async () => {
  const { answers, driver } = started(50)
  expect(await driver.mute()).toEqual([
    { Receiver: 'am', Place: 'http://am:9093', Message: 'no answer yet: svc goes on trying' },
  ])
  await until(() => answers.length === 1)
})

test('M10 whoever waits for a simulated receiver shares one call, which has the list of then', async () => {
  const { answers, driver, lists, set } = started(60_000)
  const first = driver.mute()
  await until(() => lists.length === 1)
  const others = ['b', 'c', 'd'].map((id) => {
    set([id])
    return driver.mute()
  })
  answers[0]?.([])
  await first
  await until(() => lists.length === 2)
  answers[1]?.([{ place: 'http://am:9093', message: 'refused' }])
  const failed = [{ Receiver: 'am', Place: 'http://am:9093', Message: 'refused' }]
  expect(await Promise.all(others)).toEqual([failed, failed, failed])
  expect(lists).toEqual(['a', 'd'])
})

test('M10 svc stops although a simulated receiver hangs', async () => {
  const { driver, lists } = started(60_000)
  const waiting = driver.mute()
  await until(() => lists.length === 1)
  await driver.close()
  expect(await waiting).toEqual([])
})

test('M10 what does not fit into one call is named, and the next call makes it', async () => {
  const bodies: string[] = []
  const peer = await httpPeer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString()
    })
    request.on('end', () => {
      if (body !== '') bodies.push(body)
      const path = (request.url ?? '').replace(/^\/api\/v2\//, '').replace(/\?.*/, '')
      const answer = {
        status: '{"cluster":{"status":"disabled"}}',
        silences: request.method === 'GET' ? '[]' : '{"silenceID":"a"}',
      }
      response.end(answer[path as keyof typeof answer])
    })
  })
  await using _ = peer
  const { receiver } = await opened(`{name: am, alertmanager: {urls: ["${peer.origin}"]}}`)
  const mutes = Array.from({ length: 501 }, (_, at) => muted(String(at)))
  expect(await receiver.mute?.(mutes, signal())).toEqual([
    { place: peer.origin, message: `${peer.origin} has too many silences to change at once: the others follow` },
  ])
  expect(bodies).toHaveLength(500)
})
