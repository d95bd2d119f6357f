import type { RequestListener } from 'node:http'
import { text as textOf } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import type { Mute } from '../../../src/core/watch/notify/index.ts'
import type { Matcher } from '../../../src/core/watch/notify/receivers/alertmanager-matchers.ts'
import { digest } from '../../../src/core/watch/notify/receivers/message.ts'
import { opened, signal } from '../../support/notify/notice.ts'
import { type HttpPeer, httpPeer } from '../../support/simulated/http-peer.ts'

const mute: Mute = {
  id: 'q1',
  what: 'silence',
  targets: [{ pattern: 'Sql/*' }],
  from: Date.now() - 1_000,
  until: Date.now() + 3_600_000,
  by: 'alice',
  reason: 'patch night',
}
const status = JSON.stringify({ cluster: { status: 'disabled', peers: [] } })

type Answer = { readonly status?: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }

/** The silences of Alertmanager, simulated: what real ones never answer. */
async function simulated(
  answers: Readonly<Record<string, Answer | RequestListener>>,
): Promise<{ readonly peer: HttpPeer; readonly bodies: string[] }> {
  const bodies: string[] = []
  const peer = await httpPeer((request, response) => {
    const what = `${request.method} ${(request.url ?? '').replace(/^\/api\/v2\//, '').replace(/[?/].*/, '')}`
    const usual: Readonly<Record<string, Answer>> = {
      'GET status': { body: status },
      'GET silences': { body: '[]' },
      'POST silences': { body: '{"silenceID":"0587efb3-29ee-4478-920f-0410705d882d"}' },
    }
    const answer = answers[what] ?? usual[what] ?? {}
    if (typeof answer === 'function') return void answer(request, response)
    void textOf(request).then((text) => {
      if (text !== '') bodies.push(text)
      response.writeHead(answer.status ?? 200, answer.headers).end(answer.body)
    })
  })
  return { peer, bodies }
}

async function failureAt(answers: Readonly<Record<string, Answer | RequestListener>>): Promise<string> {
  const { peer } = await simulated(answers)
  await using _ = peer
  const { receiver } = await opened(`{name: am, alertmanager: {urls: ["${peer.origin}"]}}`)
  const failures = (await receiver.mute?.([mute], signal())) ?? []
  expect(failures.map(({ place }) => place)).toEqual([peer.origin])
  return failures[0]?.message.replace(peer.origin, 'AM') ?? ''
}

/** Sends without an end. */
const endless: RequestListener = (_, response) => {
  const chunk = '['.repeat(64 * 1_024)
  const more = (): void => {
    while (!response.destroyed && response.write(chunk));
    if (!response.destroyed) response.once('drain', more)
  }
  more()
}

test('M10 a simulated Alertmanager that sends a list without an end, a foreign document or a redirect is a failure, and gets no silence', async () => {
  expect(await failureAt({ 'GET silences': endless })).toBe('AM sent more than 8 MiB')
  expect(await failureAt({ 'GET status': endless })).toBe('AM sent more than 8 MiB')
  expect(await failureAt({ 'GET status': { body: '<html>' } })).toMatch(/^AM does not say how it is clustered/)
  expect(await failureAt({ 'GET silences': { body: '{"a":1}' } })).toBe(
    'AM sent something else than a list of silences',
  )
  expect(
    await failureAt({ 'GET silences': { status: 302, headers: { location: 'http://elsewhere.test/x' } } }),
  ).toMatch(/^AM redirects to http:\/\/elsewhere\.test \(302\): redirects are not followed/)
  expect(await failureAt({ 'GET silences': { status: 403, body: 'no' } })).toMatch(/^AM answered 403 and refuses/)
  expect(await failureAt({ 'POST silences': { body: '<html>signed out</html>' } })).toBe(
    'AM did not confirm the silence',
  )
  expect(await failureAt({ 'POST silences': { status: 400, body: '"bad \u001b[31mmatcher"' } })).toBe(
    'AM answered 400 and refuses the silence: ""bad matcher""',
  )
})

test('M10 a simulated Alertmanager cannot have svc end what it did not make, nor send requests elsewhere', async () => {
  const { peer, bodies } = await simulated({})
  await using _ = peer
  const { receiver } = await opened(`{name: am, alertmanager: {urls: ["${peer.origin}"]}}`)
  await receiver.mute?.([mute], signal())
  const made = JSON.parse(bodies[0] ?? '{}') as Readonly<Record<string, string>>
  const one = { ...made, id: 'a1', status: { state: 'active' }, updatedAt: made['startsAt'] }
  const listed = [
    { ...one, id: '../../-/quit' },
    { ...one, id: 'x'.repeat(100) },
    { ...one, matchers: [{ name: 'server', value: 'prod', isRegex: false, isEqual: true }] },
    { ...one, comment: made['comment']?.replace('svc prod', 'svc other') },
    { ...one, comment: made['comment']?.replace(' q1,', ' q2,') },
    { ...one, comment: 'x'.repeat(1_000_000) },
    { ...one, matchers: 'all' },
    { ...one, startsAt: 'yesterday' },
    ...[null, 7, 'a', [], {}],
  ]
  const other = await simulated({ 'GET silences': { body: JSON.stringify(listed) } })
  await using __ = other.peer
  const next = await opened(`{name: am, alertmanager: {urls: ["${other.peer.origin}"]}}`)
  expect(await next.receiver.mute?.([], signal())).toEqual([])
  expect(other.peer.requestLines().filter((line) => !line.startsWith('GET'))).toEqual([])
  // The same list with the silence itself: that one ends.
  const own = await simulated({ 'GET silences': { body: JSON.stringify([...listed, one]) } })
  await using ___ = own.peer
  const last = await opened(`{name: am, alertmanager: {urls: ["${own.peer.origin}"]}}`)
  expect(await last.receiver.mute?.([], signal())).toEqual([])
  expect(own.peer.requestLines().filter((line) => !line.startsWith('GET'))).toEqual([
    'POST /api/v2/silences',
    'DELETE /api/v2/silence/a1',
  ])
})

test('M10 a mark with the former word is read, and is rewritten only when its silence changes or ends', async () => {
  const made = await simulated({})
  await using _ = made.peer
  const { receiver } = await opened(`{name: am, alertmanager: {urls: ["${made.peer.origin}"]}}`)
  await receiver.mute?.([mute], signal())
  const present = JSON.parse(made.bodies[0] ?? '{}') as {
    readonly matchers: readonly Matcher[]
    readonly comment: string
  }
  // The hash that an earlier version wrote, over the former word.
  const parts = present.matchers.map(({ name, value, isRegex, isEqual }) =>
    JSON.stringify([name, value, isRegex, isEqual]),
  )
  const former = digest(12, 'prod', 'quiet', 'q1', ...parts.toSorted())
  const comment = present.comment.replace(/silence q1, [0-9a-f]{12}/, `quiet q1, ${former}`)
  expect(comment).not.toBe(present.comment)
  const listed = JSON.stringify([{ ...present, comment, id: 'a1', status: { state: 'active' } }])
  const changesFor = async (mutes: readonly Mute[]) => {
    const later = await simulated({ 'GET silences': { body: listed } })
    await using __ = later.peer
    const next = await opened(`{name: am, alertmanager: {urls: ["${later.peer.origin}"]}}`)
    expect(await next.receiver.mute?.(mutes, signal())).toEqual([])
    return later.bodies.map((body) => JSON.parse(body) as Readonly<Record<string, unknown>>)
  }
  expect(await changesFor([mute])).toEqual([])
  const longer = { ...mute, until: mute.until + 600_000 }
  const mark = / \(svc prod: silence q1, [0-9a-f]{12}, (until \S+|ended by svc)\)$/
  for (const mutes of [[longer], [{ ...mute, reason: 'it takes longer' }], []]) {
    expect(await changesFor(mutes)).toEqual([
      expect.objectContaining({ id: 'a1', comment: expect.stringMatching(mark) }),
    ])
  }
})

test('M10 texts of people reach a simulated Alertmanager on one line and bounded, and the token appears in no failure', async () => {
  const { peer, bodies } = await simulated({})
  await using _ = peer
  const settings = (origin: string): string => `{name: am, alertmanager: {urls: ["${origin}"], token: {env: T}}}`
  const env = { T: 'planted-token-123' }
  const { receiver } = await opened(settings(peer.origin), { env })
  await receiver.mute?.([{ ...mute, by: 'ali\u001b[31mce\n', reason: `a\nb ${'x'.repeat(2_000)}` }], signal())
  const made = JSON.parse(bodies[0] ?? '{}') as Readonly<Record<string, string>>
  expect(made['createdBy']).toBe('alice')
  expect(made['comment']).toMatch(/^a b x{295}… \(svc prod: silence q1, [0-9a-f]{12}, until \S+\)$/)
  const echo: RequestListener = (request, response) => {
    response.writeHead(400).end(`you sent ${request.headers.authorization}`)
  }
  const other = await simulated({ 'POST silences': echo })
  await using __ = other.peer
  const next = await opened(settings(other.peer.origin), { env })
  const failures = await next.receiver.mute?.([mute], signal())
  expect(failures).toEqual([{ place: other.peer.origin, message: expect.stringContaining('[secret]') }])
  expect(JSON.stringify(failures)).not.toContain('planted')
})

test('M10 a simulated Alertmanager that hangs is a failure after the signal, a failure is not repeated at once, and a changed list is', async () => {
  const { peer } = await simulated({ 'GET silences': () => {} })
  await using _ = peer
  let at = Date.now()
  const { receiver } = await opened(`{name: am, alertmanager: {urls: ["${peer.origin}"]}}`, { now: () => at })
  expect(await receiver.mute?.([mute], AbortSignal.timeout(300))).toEqual([
    { place: peer.origin, message: expect.stringContaining('svc was stopped while it sent to') },
  ])
  const refusing = await simulated({ 'GET silences': { status: 500 } })
  await using __ = refusing.peer
  const other = await opened(`{name: am, alertmanager: {urls: ["${refusing.peer.origin}"]}}`, { now: () => at })
  const count = async (mutes: readonly Mute[]): Promise<number> => {
    const before = refusing.peer.requestLines().length
    expect(await other.receiver.mute?.(mutes, signal())).toHaveLength(1)
    return refusing.peer.requestLines().length - before
  }
  expect(await count([mute])).toBe(2)
  expect(await count([mute])).toBe(0)
  expect(await count([{ ...mute, until: mute.until + 1 }])).toBe(2)
  at += 26_000
  expect(await count([{ ...mute, until: mute.until + 1 }])).toBe(2)
})

test('M10 silences are verified every 3 min, also while there are none', async () => {
  const { peer } = await simulated({})
  await using _ = peer
  const start = Date.now()
  let at = start
  const { receiver } = await opened(`{name: am, alertmanager: {urls: ["${peer.origin}"]}}`, { now: () => at })
  for (at = start; at < start + 20 * 60_000; at += 30_000) expect(await receiver.mute?.([], signal())).toEqual([])
  // A status and a list, at the beginning and every 3 min.
  expect(peer.requestLines()).toHaveLength(2 * 7)
})
