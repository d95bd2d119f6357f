import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, question as healthQuestion } from '../server/site.ts'
import { readAnswers } from './answers.ts'
import { Asking, Observation } from './asking.ts'
import { noise, talk } from './conversations.ts'
import { type CheckContext, type ProcessResources, startFixture } from './fixture.ts'
import { evaluate } from './judge.ts'
import { places, question } from './questions.ts'
import { Secrets } from './secrets.ts'
import { type Hidden, holdTalk, makeNoise } from './talking.ts'

/**
 * At each path and verb, on average. The long tests send a tenth, always the same; with SVC_PROVE=1 others each time, or
 * those of SVC_SEED.
 */
const proving = process.env['SVC_PROVE'] === '1'
const requests = places.length * (proving ? 50 : 5)
const seed = Number(process.env['SVC_SEED'] ?? (proving ? Date.now() % 1_000_000 : 20_261_121))

/** Requests on persistent connections, each checked separately; the others are parts of conversations, or invalid. */
const questions = Math.round(requests * 0.8)
const halves = ['first', 'second'] as const
/** How many there are of each kind in one run of a property, at most, and how many runs make a round. */
const most = { questions: 40, talks: 60, noises: 40 }
const round = { questions: 20, connections: 5 }
/** After this a round ends, and so does the search for the smallest counterexample. */
const roundMs = 120_000

let context: CheckContext
let asking: Asking
let began = 0
const conversations = new Observation()
const hidden: Hidden = []
const measurements: { [when: string]: ProcessResources } = {}

beforeAll(async () => {
  context = await startFixture()
  asking = new Asking(context, 8)
  began = performance.now()
  measurements['start'] = await context.measure()
})
afterAll(() => context?.remove())

const list = <T>(one: fc.Arbitrary<T>, maxLength: number): fc.Arbitrary<T[]> =>
  fc.array(one, { maxLength, size: 'max' })

/** All of them at once; throws what the first of them threw. */
async function all(work: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(work)).find((each) => each.status === 'rejected')
  if (failed) throw failed.reason
}

/** Rounds of a property until as many requests were sent; `renew` comes before each. */
async function rounds(
  expected: number,
  numRuns: number,
  observation: Observation,
  property: fc.IAsyncProperty<unknown>,
  renew?: () => Promise<void>,
): Promise<void> {
  for (let done = observation.rounds; observation.requests < expected; done = observation.rounds) {
    await renew?.()
    await fc.assert(property, {
      numRuns,
      seed: seed + done,
      interruptAfterTimeLimit: roundMs,
      markInterruptAsFailure: true,
    })
    observation.rounds += 1
  }
}

const asksQuestions = fc.asyncProperty(list(question, most.questions), (all) => asking.ask(all))

const holdsConversations = fc.asyncProperty(list(talk, most.talks), list(noise, most.noises), (talks, noises) =>
  all([
    ...talks.map((each) => holdTalk(context, each, conversations, hidden)),
    ...noises.map((each) => makeNoise(context, each, conversations)),
  ]),
)

const common = [
  ['X-Correlation-Id: a', 'Vary: Accept', 'Cache-Control: no-store', 'X-Content-Type-Options: nosniff'],
  ["Content-Security-Policy: default-src 'none'; frame-ancestors 'none'", 'Referrer-Policy: no-referrer'],
  ['Date: Sat, 21 Nov 2026 00:00:00 GMT', 'Content-Type: text/plain; charset=utf-8', 'Content-Length: 6'],
].flat()

test('planted faults are detected: each is one that the proof below would miss without its rule', () => {
  const secrets = new Secrets(['a password'])
  secrets.register('key', 'svc_key_abcdefghijkl')
  const verdictOn = (status: number, lines: readonly string[], body = 'alive\n'): string => {
    try {
      const bytes = Buffer.from(`HTTP/1.1 ${status} X\r\n${lines.join('\r\n')}\r\n\r\n${body}`)
      const { answers, rest } = readAnswers(bytes, ['GET'])
      const [answer] = answers
      if (!answer || rest.length > 0) return 'not one answer'
      evaluate({ method: 'GET', bodiless: false, target: '/livez', sent: '', answer }, secrets, ['/srv/secret'])
      return 'nothing'
    } catch (error) {
      return error instanceof Error ? error.message : 'thrown'
    }
  }
  const sized = (body: string) => common.map((line) => line.replace('Length: 6', `Length: ${body.length}`))
  const answerWith = (status: number, body: string): string => verdictOn(status, sized(body), body)
  expect(verdictOn(200, common)).toBe('nothing')
  for (const line of common)
    expect(
      verdictOn(
        200,
        common.filter((each) => each !== line),
      ),
    ).not.toBe('nothing')
  expect(verdictOn(200, [...common, 'X-Powered-By: x'])).toContain('F4')
  expect(verdictOn(200, [...common, 'Vary: Origin'])).toContain('vary')
  expect(verdictOn(200, [...common, 'Vary: Accept-Encoding'])).toContain('vary')
  expect(verdictOn(500, common)).toContain('neither Failure nor Retry-After')
  expect(verdictOn(503, common)).toContain('neither Failure nor Retry-After')
  expect(verdictOn(202, common)).toContain('no such status is described')
  expect(verdictOn(200, common, 'alive\n\n')).toBe('not one answer')
  expect(answerWith(200, 'in a password')).toContain('S7')
  expect(answerWith(200, 'svc_key_abcdefghijkl')).toContain('S7')
  expect(answerWith(200, 'svc_at_nobodyknowsit')).toContain('S7')
  expect(answerWith(200, 'x\n    at y (z.ts:1:2)')).toContain('insides')
  expect(answerWith(400, '/srv/secret/svc.db')).not.toBe('nothing')
})

test('S7 planted faults are detected: only the operation that creates a key returns one, a new one, and once', () => {
  const secrets = new Secrets([])
  secrets.register('known', 'svc_key_abcdefghijkl')
  const verdictOn = (target: string, key: string, more: object = {}): string => {
    const body = JSON.stringify({ Key: { Name: 'ci', UserName: 'Ned' }, Secret: key, ...more })
    const lines = [
      ...common.slice(0, -2),
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${body.length}`,
    ]
    const [answer] = readAnswers(Buffer.from(`HTTP/1.1 200 X\r\n${lines.join('\r\n')}\r\n\r\n${body}`), [
      'POST',
    ]).answers
    if (!answer) return 'not one answer'
    try {
      evaluate({ method: 'POST', bodiless: false, target, sent: '', answer }, secrets, [])
      return 'nothing'
    } catch (error) {
      return error instanceof Error ? error.message : 'thrown'
    }
  }
  expect(verdictOn('/keys/create', 'svc_key_mnopqrstuvwx')).toBe('nothing')
  expect(verdictOn('/keys/create', 'svc_key_mnopqrstuvwx')).toContain('S7')
  expect(verdictOn('/keys/create', 'svc_key_abcdefghijkl')).toContain('S7')
  expect(verdictOn('/keys/create', 'svc_at_mnopqrstuvwxyz')).toContain('S7')
  const twice = { Key: { Name: 'svc_key_123456789012' } }
  expect(verdictOn('/keys/create', 'svc_key_ABCDEFGHIJKL', twice)).toContain('S7')
  for (const path of ['/keys/create.json', '/api/CreateKey', '/json/reply/CreateKey'])
    expect(verdictOn(path, `svc_key_${path.replaceAll(/\W/g, '_')}`)).toBe('nothing')
})

test('A2 planted faults are detected: only pages renew a cookie, the lasting one that the browser presented', () => {
  const [own, foreign] = ['svc_ss_abcdefghijkl', 'svc_ss_mnopqrstuvwx']
  const cookieOf = (id: string, name = 'ss-pid'): string =>
    `Set-Cookie: ${name}=${id}; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax`
  const presented = `Cookie: ss-pid=${own}; ss-opt=perm`
  /** A fault, or nothing: without the cookie of the answer, each of these answers is right. */
  const verdictOn = ({
    sent = presented,
    header = cookieOf(own),
    body = '<p>fine</p>',
    method = 'GET',
    type = 'text/html; charset=utf-8',
    target = '/',
  }): string => {
    const secrets = new Secrets([])
    for (const id of [own, foreign]) secrets.register(id, id)
    const lines = [...common.slice(0, -2), `Content-Type: ${type}`, `Content-Length: ${body.length}`, header]
    const bytes = Buffer.from(`HTTP/1.1 200 X\r\n${lines.join('\r\n')}\r\n\r\n${body}`)
    const [answer] = readAnswers(bytes, [method]).answers
    if (!answer) return 'not one answer'
    try {
      evaluate(
        { method, bodiless: false, target, sent: `${method} ${target} HTTP/1.1\r\n${sent}\r\n\r\n${own}`, answer },
        secrets,
        [],
      )
      return 'nothing'
    } catch (error) {
      return error instanceof Error ? error.message : 'thrown'
    }
  }
  const text = { type: 'text/plain; charset=utf-8', target: '/livez', body: 'alive\n' }
  expect(verdictOn({})).toBe('nothing')
  expect(verdictOn({ header: `${cookieOf(own)}; Secure` })).toBe('nothing')
  expect(verdictOn({ ...text, header: 'X: x' })).toBe('nothing')
  for (const fault of [
    { header: cookieOf(foreign) },
    { header: cookieOf(own, 'ss-id') },
    { header: cookieOf(own).replace('; HttpOnly', '') },
    { header: cookieOf(own).replace('2592000', '31536000') },
    { header: `Refresh: 60; url=/?s=${own}` },
    { header: `${cookieOf(own)}\r\n${cookieOf(foreign)}` },
    { body: `<p>${own}</p>` },
    { sent: `Cookie: ss-id=${own}; ss-opt=temp` },
    { sent: `Cookie: ss-pid=${own}` },
    { sent: `X-ss-pid: ${own}\r\nX-ss-opt: perm` },
    { sent: `Cookie: ss-pid=${own}x; ss-opt=perm` },
    { sent: 'Accept: text/html' },
    text,
  ])
    expect(verdictOn(fault), JSON.stringify(fault)).toContain('S7 it holds a secret')
})

describe.each(halves)(`${requests} requests, seed ${seed}, the %s half`, (half) => {
  test('S2 S6 S7 R6 each complete request gets one answer, as described, and anything else gets none', async () => {
    const part = (halves.indexOf(half) + 1) / halves.length
    await all([
      // Questions remove users and end sessions; conversations present no credentials.
      rounds(questions * part, round.questions, asking.observation, asksQuestions, context.renew),
      rounds((requests - questions) * part, round.connections, conversations, holdsConversations),
    ])
    asking.close()
    measurements[half] = await settled()
  }, 900_000)
})

/** The resources that remain when the connections are gone; they may take as long as they linger. */
async function settled(): Promise<ProcessResources> {
  const start = measurements['start']
  let now = await context.measure()
  for (let i = 0; i < 100 && (now.sockets > (start?.sockets ?? 0) || (now.files ?? 0) > mayHold(start)); i += 1) {
    await new Promise((resolve) => setTimeout(resolve, 100))
    now = await context.measure()
  }
  return now
}
const mayHold = (start: ProcessResources | undefined): number => (start?.files ?? Number.POSITIVE_INFINITY) + 3

describe('afterwards', () => {
  test('the requests were of each sort, and most valid ones were answered', () => {
    const { observation } = asking
    const seconds = ((performance.now() - began) / 1_000).toFixed(1)
    const count = `${observation.requests} questions and ${conversations.requests} requests on ${hidden.length} connections`
    process.stderr.write(`${count} in ${seconds} s, seed ${seed}; ${JSON.stringify(measurements)}\n`)
    const none = [200, 400, 401, 403, 404, 405, 413, 415, 421, 431, 503].filter(
      (status) => observation.count(` ${status}`) === 0,
    )
    expect(none).toEqual([])
    const operations = [
      ...['auth', 'accesstoken', 'assignroles', 'unassignroles', 'createkey', 'heartbeat', 'assignroles[]', 'health[]'],
    ]
    expect(operations.filter((operation) => observation.count(`POST ${operation} 200`) === 0)).toEqual([])
    expect(
      ['whole', 'last', 'broken', 'noise'].filter((kind) => conversations.count(`${kind} `) < requests / 200),
    ).toEqual([])
  })

  test('S3 memory, sockets and files are as they were half way', () => {
    const { first, second, start } = measurements
    if (!first || !second || !start) throw new Error('Nothing was measured')
    expect((second.heapUsed - first.heapUsed) / 2 ** 20).toBeLessThan(8)
    expect((second.rss - first.rss) / 2 ** 20).toBeLessThan(64)
    expect((second.external - first.external) / 2 ** 20).toBeLessThan(8)
    expect(second.sockets).toBe(start.sockets)
    if (start.files !== undefined) expect(second.files).toBeLessThanOrEqual(mayHold(start))
  })

  test('S7 the log has one line for each answer, none for invalid requests, no internal error and no secret', async () => {
    const { log, secrets } = context
    const answers = [...asking.observation.correlationIds, ...conversations.correlationIds]
    await log.complete(answers)
    const counts = Map.groupBy(answers, (id) => id)
    expect([...counts].filter(([id, same]) => log.answers(id) !== same.length)).toEqual([])
    expect(hidden.length).toBeGreaterThan(0)
    expect(hidden.filter((id) => log.answers(id) > 0)).toEqual([])
    expect(log.problems).toEqual([])
    expect(log.lines.filter((line) => secrets.in(line).length > 0)).toEqual([])
  })

  test('S9 it still answers, and stops on request', async () => {
    expect((await ask(context.port, '/livez')).text).toBe('alive\n')
    expect((await ask(context.port, '/readyz')).text).toBe('ready\n')
    expect((await ask(context.port, healthQuestion)).json.Status).toBe('Success')
    await context.renew()
    expect(await context.stop()).toBe(0)
  })
})
