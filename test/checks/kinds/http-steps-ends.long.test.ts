import { expect, test } from 'vitest'
import { limits, type Result } from '../../../src/core/checks/engine/index.ts'
import steps from '../../../src/core/checks/kinds/http-steps/index.ts'
import { checked, type RunKindOptions } from '../../support/engine/run-kind.ts'
import { byStep, type RawSteps as Raw, stepsWith } from '../../support/engine/run-steps.ts'
import { givenUp } from '../../support/hostile/given-up.ts'
import { type HttpPeer, httpPeer } from '../../support/simulated/http-peer.ts'
import { processorMs } from '../../support/suite/processor-time.ts'

type Reply = { readonly status?: number; readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> }

const env = { TOKEN: 'lantern-and-orchard-9' }

/** A real server whose n-th answer (from 1) is configured. */
function answering(look: (n: number) => Reply): Promise<HttpPeer> {
  let looks = 0
  return httpPeer((_, response) => {
    looks += 1
    const { status = 200, body = {}, headers } = look(looks)
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body))
  })
}

const { settingsOf, run } = stepsWith(env)

/** The result of one step, `done`. */
const look = async (server: HttpPeer, step: Raw, more: Raw = {}, options: RunKindOptions = {}): Promise<Result> => {
  const raw = { url: `${server.origin}/v1`, steps: [{ name: 'done', path: '/job', ...step }], ...more }
  return checked(await byStep(run(raw, options)), 'done')
}

const problemOf = (step: Raw, more: Raw = {}): string | undefined =>
  steps.validate?.(settingsOf({ url: 'http://127.0.0.1', steps: [{ name: 'a', path: '/a', ...step }], ...more }))

/** Makes `/^(?=a)(a+)+$/` and `/^(?=\w)(\w+)+$/` try for hours. */
const hostile = { s: `${'a'.repeat(60)}!` }
const nested = '/^(?=a)(a+)+$/'
const failsOf = (n: number): readonly Raw[] =>
  Array.from({ length: n }, (_, index) => ({
    expect: { '$.s': `/^(?=\\w)(\\w+)+${index}$/` },
    says: `failure ${index}`,
  }))

test('a pattern that backtracks ends the wait at once, and is abandoned for all later uses', async () => {
  await using server = await answering(() => ({ body: hostile }))
  const start = processorMs()
  const result = await look(server, { until: { expect: { '$.s': nested }, every: '100ms' }, fails: failsOf(40) })
  // Once 250 ms, and what a busy machine makes of it; 40 patterns, each by itself, take 10 s.
  expect(processorMs() - start).toBeLessThan(2_000)
  expect(server.requestLines()).toHaveLength(1)
  expect(result).toMatchObject({ status: 'failed', fault: 'data' })
  const judged = String.raw`cannot be evaluated: /\^\(\?=\\w\)\(\\w\+\)\+0\$/ ${givenUp}`
  expect(result.message).toMatch(
    new RegExp(String.raw`^done: GET /v1/job was answered 200, sent 1 time in [\d.]+ m?s: ${judged}$`),
  )
})

test('so does the pattern of the final answer', async () => {
  await using server = await answering(() => ({ body: hostile }))
  const result = await look(server, { until: { expect: { '$.s': nested }, every: '100ms' } })
  expect(result).toMatchObject({ status: 'failed', fault: 'data' })
  expect(result.message).toMatch(new RegExp(String.raw`: cannot be evaluated: /\^\(\?=a\)\(a\+\)\+\$/ ${givenUp}`))
  expect(server.requestLines()).toHaveLength(1)
})

test('expectations of a step share one budget, and an abandoned one does not count as ok', async () => {
  await using server = await answering(() => ({ body: { ...hostile, t: hostile.s, u: hostile.s } }))
  const start = processorMs()
  const expected = await look(server, { expect: { '$.s': nested, '$.t': nested, '$.u': nested, '$.v': 'x' } })
  expect(processorMs() - start).toBeLessThan(1_500)
  expect(expected).toMatchObject({ status: 'failed', fault: 'data' })
  expect(expected.message).toMatch(new RegExp(String.raw`: \$\.s is "a{60}!" and cannot be evaluated: .* ${givenUp}`))
  expect(expected.details?.[0]).toContain('was not tried, as another pattern for this answer timed out')
  expect(await look(server, { fails: failsOf(1) })).toMatchObject({ status: 'failed', fault: 'data' })
})

test('a status that only `until` names is accepted for the last answer', async () => {
  const gone = (n: number): Reply => ({ status: n < 3 ? 200 : 404 })
  await using server = await answering(gone)
  const until = { status: [404], every: '100ms' }
  expect((await look(server, { until })).message).toMatch(
    /^done: GET \/v1\/job was answered 404 with 2 B, sent 3 times/,
  )
  await using another = await answering((n) => ({ status: n < 3 ? 200 : 500 }))
  expect((await look(another, { until })).message).toMatch(
    /was answered 500, sent 3 times in .* \(expected 2xx, 404\)$/,
  )
})

test.each<[string, Raw, RegExp | undefined]>([
  ['none of its own', { until: { status: [404] } }, undefined],
  ['one that has it', { status: ['2xx', '4xx'], until: { status: [404, 200] } }, undefined],
  ['one that has a part of it', { status: [404], until: { status: ['4xx'] } }, undefined],
  [
    'one that lacks it',
    { status: ['2xx'], until: { status: [200, 404] } },
    /^step "a" waits for status 404, which its own status \(2xx\) excludes: add it there, or remove that status$/,
  ],
])('a step that waits for a status and has %s is refused beforehand where it never ends', (_, step, says) => {
  if (says) expect(problemOf(step)).toMatch(says)
  else expect(problemOf(step)).toBeUndefined()
})

const signed = { signed: true, token: { env: 'TOKEN' } }

test('a signed step that is refused stops waiting, whatever its status allows, and the next run does not repeat it', async () => {
  await using server = await answering(() => ({ status: 401 }))
  const sharedLimits = limits()
  const step = { status: ['2xx', 401], until: { status: [200], every: '100ms' } }
  const refused = await look(server, step, signed, { limits: sharedLimits, timeoutMs: 3_000, retries: 2 })
  expect(refused).toMatchObject({ status: 'failed', fault: 'auth' })
  expect(refused.message).toMatch(/^done: GET \/v1\/job was answered 401, sent 1 time in .*: the sign-in was refused$/)
  expect(server.requestLines()).toHaveLength(1)
  await expect(look(server, step, signed, { limits: sharedLimits })).rejects.toThrow(/refused: /)
  expect(server.requestLines()).toHaveLength(1)
})

test('a refusal during the wait ends it as well; without a credential it does not', async () => {
  await using server = await answering((n) => ({ status: n < 3 ? 202 : 401 }))
  const step = { status: ['2xx', 401], until: { status: [200], every: '100ms', most: 5 } }
  expect(await look(server, step, signed)).toMatchObject({ status: 'failed', fault: 'auth' })
  expect(server.requestLines()).toHaveLength(3)
  expect(await look(server, step)).toMatchObject({ status: 'failed', fault: 'timeout' })
  expect(server.requestLines()).toHaveLength(8)
})

test('a signed step that waits for its own refusal is refused beforehand; one that sends one request may expect it', async () => {
  const wait = { until: { status: [200, 401] } }
  expect(problemOf(wait, signed)).toMatch(
    /^step "a" waits for status 401, which always ends the polling, because a refused credential is sent only once: remove it/,
  )
  expect(problemOf(wait)).toBeUndefined()
  expect(problemOf({ until: { status: ['4xx'] } }, signed)).toBeUndefined()
  await using server = await answering(() => ({ status: 401 }))
  expect(await look(server, { status: [401] }, signed)).toMatchObject({ status: 'ok' })
})

const untilFinal = { until: { expect: { '$.token': '/^final/' }, every: '100ms', most: 2 } }

test('captures of a step are hidden while it waits, unless `show` lists them', async () => {
  await using server = await answering((n) => ({ body: { token: `tmp-SECRET-${n}`, was: `tmp-SECRET-${n - 1}` } }))
  const hidden = await look(server, { ...untilFinal, capture: { tok: '$.token' } })
  expect(hidden.message).toContain('last answer: $.token is "[secret]" and does not match')
  const output = await look(server, { ...untilFinal, capture: { tok: '$.token' } }, { show: ['tok'] })
  expect(output.message).toContain('last answer: $.token is "tmp-SECRET-4" and does not match')
  const earlier = { until: { ...untilFinal.until, expect: { '$.was': 'x' } }, capture: { tok: '$.token' } }
  expect((await look(server, earlier)).message).toContain('last answer: $.was is "[secret]", expected')
})

test.each<[string, number]>([
  ['300', 300],
  ['more than can be taken', 9_000],
])('a long one is hidden completely: %s characters', async (_, length) => {
  const token = `tmp-${'S3cr3t-'.repeat(length / 7)}`
  await using server = await answering(() => ({ body: { token } }))
  const waits = await look(server, { ...untilFinal, capture: { tok: '$.token' } })
  expect(JSON.stringify(waits)).not.toContain('S3cr3t-S3cr3t')
  const ends = await look(server, { expect: { '$.token': 'x' }, capture: { tok: '$.token' } })
  expect(JSON.stringify(ends)).not.toContain('S3cr3t-S3cr3t')
})

test('the content of an unfinished answer is hidden and never sent', async () => {
  await using server = await answering((n) => ({ body: n === 2 ? { state: 'x', id: 'early' } : { state: 'done' } }))
  const done = {
    name: 'done',
    path: '/job',
    until: { expect: { '$.state': 'done' }, every: '100ms' },
    capture: { id: '$.id' },
  }
  const raw = {
    url: `${server.origin}/v1`,
    allowWrites: true,
    steps: [{ name: 'make', method: 'POST', path: '/jobs' }, done],
    cleanup: [{ name: 'remove', method: 'DELETE', path: '/jobs/\x24{id}', undoes: 'make' }],
  }
  const results = await run(raw)
  expect(results.map(({ message }) => message).slice(2)).toEqual([
    expect.stringMatching(/^done: .* sent 2 times in .*: the answer has no \$\.id, so no \$\{id\}$/),
    expect.stringMatching(/^remove: DELETE \S+ not sent: no step captured \$\{id\}; what step "make" created/),
  ])
  expect(server.requestLines()).toEqual(['POST /v1/jobs', 'GET /v1/job', 'GET /v1/job'])
})
