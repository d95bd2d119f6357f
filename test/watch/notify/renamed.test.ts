import { text as textOf } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { notifyPart } from '../../../src/core/service/notify/notify.ts'
import { SilenceKeeper } from '../../../src/core/service/silences/silence-keeper.ts'
import { type StatesPart, statesPart } from '../../../src/core/service/watch/states.ts'
import { Outbox, type Present } from '../../../src/core/watch/outbox/index.ts'
import type { StoredSubject, SubjectState } from '../../../src/core/watch/states/index.ts'
import { load } from '../../config/given.ts'
import { neverWatching } from '../../support/notify/notice.ts'
import { outboxRows } from '../../support/notify/outbox-rows.ts'
import { httpPeer } from '../../support/simulated/http-peer.ts'
import { until } from '../../support/suite/until.ts'

test('W23 an incident that stands under another name after a reload is sent under that name', async () => {
  const posted: string[] = []
  await using peer = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      if (request.url?.endsWith('/alerts') === true) posted.push(body)
      response.writeHead(200, { 'content-type': 'application/json' }).end('[]')
    })
  })
  const config = await load(`notify: [{name: am, alertmanager: {urls: ["${peer.origin}"]}}]`)
  const now = Date.now()
  const facts = { level: 'failed', message: 'it is down', isFlapping: false, isUnobserved: false } as const
  const state = {
    level: 'failed',
    message: 'it is down',
    depth: 'Basic',
    latest: { level: 'failed', at: now, since: now },
    incident: { id: 'i-1', beganAt: now - 60_000, confirmedAt: now - 40_000, ...facts },
  } as unknown as SubjectState
  let name = 'old'
  const states = {
    ...statesPart(),
    views: () => [{ key: `Sql/tcp/${name}`, type: 'Sql', monitor: `tcp ${name}`, check: 'connect', state }],
    stateOf: ({ key }: { readonly key: string }) => (key === `Sql/tcp/${name}` ? state : 'removed'),
  } as unknown as StatesPart
  const silences = new SilenceKeeper({ config, store: undefined, now: Date.now })
  const part = notifyPart({
    config,
    version: '0',
    rows: async () => outboxRows(),
    states,
    silences,
    watching: neverWatching,
  })
  onTestFinished(async () => await part.close?.())
  await part.open?.()
  await part.start?.()
  part.answers?.()
  const isPosted = (monitor: string): boolean => posted.some((body) => body.includes(`"monitor":"${monitor}"`))
  await until(() => isPosted('tcp old'))
  expect(isPosted('tcp new')).toBe(false)
  const commit = await part.reload?.(config)
  name = 'new'
  commit?.()
  await until(() => isPosted('tcp new'))
})

test('W23 no receiver gets the end of a monitor whose incident has gone on under another name', () => {
  const subject: StoredSubject = { key: 'App/http/old', type: 'App', monitor: 'http old', check: 'connect' }
  const keys = new Set([subject.key])
  const incident = { id: 'next', beganAt: 30_000, confirmedAt: 50_000, level: 'failed', message: 'it fails' } as const
  const failing: Present = {
    subject,
    state: {
      level: 'failed',
      message: 'it fails',
      depth: 'Basic',
      latest: { level: 'failed', at: 50_000, since: 30_000, fault: 'timeout' },
      incident: { ...incident, isFlapping: false, isUnobserved: false },
    },
    isSilenced: false,
  }
  let present: Present | 'removed' = failing
  const mail = { name: 'mail', folds: true, remindMs: Number.POSITIVE_INFINITY, accepts: () => true }
  const outbox = new Outbox(0, () => present, '@b//svc/receivers')
  outbox.configure([mail], 0)
  // A node that knows the new name has stored the incident under it, and this node still has the old name. The incident that
  // it finds has another id.
  const last = { incident: 'moved', level: 'failed', isFlapping: false, beganAt: 0, observedAt: 0, at: 0 } as const
  const row = { last, ends: [] } as const
  outbox.takeOver(keys, [{ receiver: 'mail', subject, row }], 40_000)
  outbox.watch(subject)
  const sentAt = (now: number): readonly string[] =>
    outbox.tick(now).effects.flatMap((effect) => {
      if (effect.type !== 'send') return []
      outbox.answered('mail', effect.attempt, { what: 'accepted' }, now)
      return effect.items.map(({ what, incident: of, text }) => `${what} ${of}: ${text}`)
    })
  expect(sentAt(50_000)).toEqual([])
  // It gets the new name before mail has been sent.
  present = 'removed'
  expect(sentAt(60_000)).toEqual(['removed moved: it no longer exists', 'removed next: it no longer exists'])
  // While it has the old one, its receivers get messages about both.
  present = failing
  outbox.takeOver(keys, [{ receiver: 'mail', subject, row }], 120_000)
  outbox.watch(subject)
  const latest = { level: 'failed', at: 129_000, since: 30_000, fault: 'timeout' } as const
  present = { ...failing, state: { ...failing.state, latest } }
  expect(sentAt(120_000)).toEqual([])
  expect(sentAt(130_000)).toEqual(['end moved: it ended before the next fault began', 'begin next: it fails'])
})

test('W23 what a node hands over under a former name ends with the incident that goes on under the present one', () => {
  const former: StoredSubject = { key: 'App/http/old', type: 'App', monitor: 'http old', check: 'connect' }
  const subject: StoredSubject = { ...former, key: 'App/http/new', monitor: 'http new' }
  const incident = { id: 'own', beganAt: 0, confirmedAt: 20_000, level: 'failed', message: 'it fails' } as const
  const latest = { level: 'failed', at: 100_000, since: 0, fault: 'timeout' } as const
  const failing: Present = {
    subject,
    state: {
      ...{ level: 'failed', message: 'it fails', depth: 'Basic', latest },
      incident: { ...incident, isFlapping: false, isUnobserved: false, formerly: [former] },
    },
    isSilenced: false,
  }
  let present: Present = failing
  const outbox = new Outbox(0, ({ key }) => (key === subject.key ? present : 'removed'), '@b//svc/receivers')
  outbox.configure([{ name: 'pager', folds: false, remindMs: Number.POSITIVE_INFINITY, accepts: () => true }], 0)
  const toldOf = (id: string) =>
    ({ incident: id, level: 'failed', isFlapping: false, beganAt: 0, observedAt: 0, at: 0 }) as const
  const own = { receiver: 'pager', subject, row: { last: { ...toldOf('own'), as: former }, ends: [] } }
  const handedOver = { receiver: 'pager', subject: former, row: { last: toldOf('of the other node'), ends: [] } }
  outbox.takeOver(new Set([subject.key, former.key]), [own, handedOver], 100_000)
  const sentAt = (now: number): readonly string[] =>
    outbox.tick(now).effects.flatMap((effect) => {
      if (effect.type !== 'send') return []
      outbox.answered('pager', effect.attempt, { what: 'accepted' }, now)
      return effect.items.map(({ what, incident: of, as }) => `${what} ${of} of ${as?.monitor}`)
    })
  expect([...sentAt(100_000), ...sentAt(110_000)]).toEqual([])
  const well = { level: 'ok', at: 140_000, since: 120_000 } as const
  present = { ...failing, state: { level: 'ok', message: 'fine', depth: 'Basic', latest: well } }
  expect(sentAt(140_000)).toEqual(['end of the other node of http old', 'end own of http old'])
})
