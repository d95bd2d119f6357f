import { expect, test } from 'vitest'
import { type Notice, receiverKinds } from '../../../src/core/watch/notify/index.ts'
import { notice, signal } from '../../support/notify/notice.ts'
import { type Sent, sending } from '../../support/notify/sending.ts'

const begin: Notice = notice({ drill: { callback: 'https://svc.test/drills/opened/token' } }, { type: undefined })
const end: Notice = { ...begin, id: 'n2', what: 'end', endedAt: begin.observedAt }

/** Words of messages about incidents alone. */
const alarm = /SvcFailed|SvcWarning|critical|"warning"|FAILED|RECOVERED|"people"/
/** Words of messages of drills alone. The end of an event at PagerDuty has no text. */
const mark = /DRILL of svc: (?:nothing has failed|it is over)|"event_action":"resolve"/

/** The mistakes in the messages of a drill. */
const faultsIn = (texts: readonly string[]): readonly string[] =>
  texts.flatMap((text) => [...(mark.test(text) ? [] : ['no mark']), ...(alarm.test(text) ? ['an alarm'] : [])])

test('M14 every kind of receiver is in the table of the marks of drills', () => {
  expect(Object.keys(sending).sort()).toEqual(receiverKinds.map(({ name }) => name).sort())
})

test.each(Object.keys(sending))('M14 each message of a drill through %s says that it is one', async (kind) => {
  await using sent = await (sending[kind] as () => Promise<Sent>)()
  for (const one of [begin, end]) {
    expect(await sent.one.receiver.send([one], signal())).toMatchObject({ what: 'accepted', receipt: /./ })
  }
  expect(sent.texts().length).toBe(2)
  expect(faultsIn(sent.texts())).toEqual([])
  expect(sent.texts()[0]).toContain('/drills/opened/')
})

test.each(Object.keys(sending))(
  'M14 a message of an incident through %s is none of a drill, as the test notices',
  async (kind) => {
    await using sent = await (sending[kind] as () => Promise<Sent>)()
    await sent.one.receiver.send([notice()], signal())
    expect(new Set(faultsIn(sent.texts()))).toEqual(new Set(['no mark', 'an alarm']))
  },
)
