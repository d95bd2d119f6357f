import { readFileSync } from 'node:fs'
import { text as textOf } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { type Notice, receiverKinds } from '../../../src/core/watch/notify/index.ts'
import { notice, type Opened, opened, openedProgram, signal } from '../../support/notify/notice.ts'
import { startSmtp } from '../../support/servers/smtp.ts'
import { httpPeer } from '../../support/simulated/http-peer.ts'

/** A receiver and the messages that it has sent. */
type Sent = AsyncDisposable & { readonly one: Opened; readonly texts: () => readonly string[] }

async function overHttp(yaml: (origin: string) => string, status = 200): Promise<Sent> {
  const bodies: string[] = []
  const peer = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      if (request.method === 'POST') bodies.push(body)
      response.writeHead(status).end()
    })
  })
  const one = await opened(yaml(peer.origin), { env: { KEY: 'people', DRILL_KEY: 'drills' } })
  return { one, texts: () => bodies, [Symbol.asyncDispose]: () => peer[Symbol.asyncDispose]() }
}

/** A receiver of each kind, and its messages. */
const sending: Readonly<Record<string, () => Promise<Sent>>> = {
  alertmanager: () => overHttp((origin) => `{name: r, alertmanager: {urls: ["${origin}"]}}`),
  webhook: () => overHttp((origin) => `{name: r, webhook: {url: "${origin}/hook"}}`),
  pagerduty: () =>
    overHttp(
      (origin) => `{name: r, pagerduty: {routingKey: {env: KEY}, drillRoutingKey: {env: DRILL_KEY}, url: "${origin}"}}`,
      202,
    ),
  email: async () => {
    const mails: string[] = []
    const peer = await startSmtp({
      onData: (stream, _, done) => {
        void textOf(stream).then((mail) => {
          mails.push(mail)
          done()
        })
      },
    })
    const to = `{server: "smtp://127.0.0.1:${peer.port}", from: svc@svc.test, to: [accepted@svc.test]}`
    const one = await opened(`{name: r, email: ${to}}`)
    return { one, texts: () => mails, [Symbol.asyncDispose]: () => peer[Symbol.asyncDispose]() }
  },
  exec: async () => {
    const { allowed, ...one } = await openedProgram('cat >> $(dirname "$0")/bodies')
    const texts = (): readonly string[] => readFileSync(`${allowed}/bodies`, 'utf8').trim().split('\n')
    return { one, texts, [Symbol.asyncDispose]: async () => {} }
  },
}

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
