import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { readSettings } from '../../../src/core/base/settings/index.ts'
import { limits } from '../../../src/core/checks/engine/index.ts'
import steps from '../../../src/core/checks/kinds/http-steps/index.ts'
import { finds } from '../../support/engine/finds.ts'
import { checked } from '../../support/engine/run-kind.ts'
import { byStep, messagesOf, type RawSteps as Raw, stepsWith } from '../../support/engine/run-steps.ts'
import { type HttpPeer, httpPeer } from '../../support/simulated/http-peer.ts'

type Reply = { readonly status?: number; readonly body?: unknown } | 'silence' | 'reset'
type Jobs = HttpPeer & { readonly bodies: readonly string[]; readonly removed: readonly string[] }

const env = { TOKEN: 'lantern-and-orchard-9', WRONG: 'not-the-token-at-all' }

/** A real server with one job, whose n-th request for the state (from 1) has a configured answer. */
async function jobs(look: (n: number) => Reply): Promise<Jobs> {
  const [bodies, removed]: [string[], string[]] = [[], []]
  let looks = 0
  const server = await httpPeer((request, response) => {
    void text(request).then((body) => {
      const { method, url = '' } = request
      const answer = (status: number, reply: unknown): void => {
        const isText = typeof reply === 'string'
        const type = { 'Content-Type': isText ? 'application/xml' : 'application/json' }
        response.writeHead(status, type).end(isText ? reply : JSON.stringify(reply))
      }
      if (method === 'POST') {
        bodies.push(body)
        answer(201, { id: 'job/7' })
        return
      }
      if (method === 'DELETE') {
        removed.push(url)
        response.writeHead(204).end()
        return
      }
      if (!url.startsWith('/v1/jobs/')) return answer(200, { headers: request.headers })
      looks += 1
      const text = look(looks)
      if (text === 'silence') return
      if (text === 'reset') request.socket.resetAndDestroy()
      else answer(text.status ?? 200, text.body ?? {})
    })
  })
  return { ...server, bodies, removed }
}

const state = (now: string, more: Raw = {}): Reply => ({ body: { state: now, ...more } })
const states =
  (...all: readonly string[]) =>
  (n: number): Reply =>
    state(all[n - 1] ?? all.at(-1) ?? '')

const { settingsOf, run } = stepsWith(env)
const waitFor = (until: Raw, more: Raw = {}): Raw => ({
  name: 'done',
  path: `/jobs/\${job}`,
  until: { expect: { '$.state': '/^(done|failed)$/' }, every: '100ms', ...until },
  ...more,
})
/** A job is submitted, waited for and removed. */
const job = (server: HttpPeer, wait: Raw, more: Raw = {}): Raw => ({
  url: `${server.origin}/v1`,
  allowWrites: true,
  show: ['job'],
  values: { clip: 'C:\\media "1".mxf' },
  steps: [
    { name: 'submit', method: 'POST', path: '/jobs', body: `{"file": "\${clip}"}`, capture: { job: '$.id' } },
    wait,
    { name: 'after', path: '/after' },
  ],
  cleanup: [{ name: 'remove', method: 'DELETE', path: `/jobs/\${job}`, undoes: 'submit' }],
  ...more,
})
const looksAt = (server: HttpPeer): number =>
  server.requestLines().filter((line) => line.startsWith('GET /v1/jobs/')).length

test('a step is repeated until its final answer, and evaluated by that', async () => {
  await using server = await jobs((n) => (n < 3 ? state('running') : state('done', { result: 'r-9', verdict: 'good' })))
  const wait = waitFor({}, { json: { '$.verdict': 'good' }, capture: { result: '$.result' } })
  const raw = job(server, wait)
  const results = await run({
    ...raw,
    steps: [...(raw['steps'] as Raw[]), { name: 'use', path: `/results/\${result}` }],
  })
  expect(messagesOf(results).slice(1)).toEqual([
    'step ok submit: POST /v1/jobs was answered 201 with 14 B',
    'step ok done: GET /v1/jobs/job%2F7 was answered 200 with 48 B, sent 3 times',
    expect.stringMatching(/^step ok after: GET/),
    expect.stringMatching(/^step ok use: GET/),
    'cleanup ok remove: DELETE /v1/jobs/job%2F7 was answered 204 with 0 B',
  ])
  await finds(byStep(results), ['done', /, sent 3 times in [\d.]+ m?s, the last in [\d.]+ m?s \(warn 1 s, fail 5 s\)$/])
  const { message, measurement } = checked(await byStep(results), 'done')
  expect(measurement).toMatchObject({ unit: 'milliseconds', limit: 5_000 })
  // The threshold is of one request: two pauses of 100 ms are not part of it.
  const [, took, of1000] = /sent 3 times in ([\d.]+) (m?s),/.exec(message) ?? []
  expect(measurement?.value).toBeLessThan(Number(took) * (of1000 === 's' ? 1_000 : 1) - 190)
  expect(server.requestLines()).toContain('GET /v1/results/r-9')
  expect(server.bodies.map((body): unknown => JSON.parse(body))).toEqual([{ file: 'C:\\media "1".mxf' }])
})

test('the expectations of the step apply to the final answer only', async () => {
  await using server = await jobs((n) => state(n < 2 ? 'running' : 'failed', { verdict: n < 2 ? 'good' : 'bad' }))
  const results = await run(job(server, waitFor({}, { expect: { '$.verdict': 'good' } })))
  await finds(
    byStep(results),
    ['done failed (data)', /sent 2 times in [\d.]+ m?s: \$\.verdict is "bad", expected "good"$/],
    'after: after: not run: step "done" failed',
  )
})

test('when the time is over it reports the number of requests and the last answer, and runs its cleanup', async () => {
  await using server = await jobs(states('queued', 'running'))
  const results = await run(job(server, waitFor({ within: '1500ms' })))
  const done = checked(await byStep(results), 'done')
  expect(done).toMatchObject({ status: 'failed', fault: 'timeout' })
  expect(done.message).toMatch(
    /^done: GET \/v1\/jobs\/job%2F7 is not finished, sent \d+ times in [\d.]+ m?s; last answer: \$\.state is "running" and does not match \/\^\(done\|failed\)\$\/$/,
  )
  expect(done.message).toContain(`sent ${looksAt(server)} times`)
  expect(looksAt(server)).toBeGreaterThan(1)
  expect(server.removed).toEqual(['/v1/jobs/job%2F7'])
  await expect.poll(() => server.open()).toBe(0)
})

test('without `within` the deadline of the monitor ends it, early enough for the cleanup', async () => {
  await using server = await jobs(states('running'))
  const results = await run(job(server, waitFor({})), { timeoutMs: 3_000 })
  expect(messagesOf(results).slice(2)).toEqual([
    expect.stringMatching(/^step failed done: .* is not finished, sent \d+ times$/),
    'step failed after: not run: step "done" failed',
    'cleanup ok remove: DELETE /v1/jobs/job%2F7 was answered 204 with 0 B',
  ])
  expect(server.removed).toHaveLength(1)
})

test('`within` never extends the time of the monitor', async () => {
  await using server = await jobs(states('running'))
  const results = await run(job(server, waitFor({ within: '10m' })), { timeoutMs: 2_000 })
  await finds(byStep(results), ['done', /is not finished/])
  expect(server.removed).toHaveLength(1)
})

test('a missing answer is reported by the last one that came, or by itself where none came', async () => {
  await using server = await jobs((n) => (n < 3 ? state('running') : 'silence'))
  const results = await run(job(server, waitFor({ within: '1500ms' })))
  await finds(byStep(results), ['done', /is not finished, sent 3 times in [\d.]+ m?s; last answer: \$\.state is/])
  await using deaf = await jobs(() => 'silence')
  const none = await run(job(deaf, waitFor({ within: '300ms' })))
  await finds(byStep(none), [
    'done (timeout)',
    /^done: GET \S+: 127\.0\.0\.1:\d+ accepted the connection but sent nothing for [\d.]+ m?s$/,
  ])
  await expect.poll(() => server.open() + deaf.open()).toBe(0)
})

test('a pause that exceeds the remaining time is cut, and the last request is still sent', async () => {
  await using server = await jobs(states('running', 'done'))
  const results = await run(job(server, waitFor({ every: '10m', within: '1s' })))
  await finds(byStep(results), ['done', /, sent 2 times in/])
})

test('at most `most` requests are sent; the last of them may succeed', async () => {
  await using server = await jobs(states('running', 'running', 'done'))
  await finds(byStep(run(job(server, waitFor({ most: 3 })))), 'done ok')
  await using slow = await jobs(states('running', 'running', 'done'))
  const results = await run(job(slow, waitFor({ most: 2 })))
  await finds(byStep(results), ['done', /is not finished, sent 2 times in [\d.]+ m?s \(request limit reached\); last/])
  expect(looksAt(slow)).toBe(2)
})

test('an answer that matches a failure ends the wait and reports its meaning', async () => {
  await using server = await jobs((n) => state(n < 2 ? 'running' : 'aborted', { why: 'disk' }))
  const fails = [
    { expect: { '$.state': 'aborted', '$.why': 'power' }, says: 'no power' },
    { expect: { '$.state': '/^abort/', '$.why': 'disk' }, says: 'the disk broke the job off' },
  ]
  const results = await run(job(server, waitFor({}, { fails })))
  await finds(byStep(results), [
    'done failed (data)',
    /^done: the disk broke the job off \(GET \/v1\/jobs\/job%2F7 was answered 200, sent 2 times in [\d.]+ m?s: \$\.state is "aborted", \$\.why is "disk"\)$/,
  ])
  expect(looksAt(server)).toBe(2)
})

test('`fails` is evaluated without `until` too, and an answer without its values is not such a failure', async () => {
  const one = async (body: Raw) => {
    await using server = await jobs(() => ({ body }))
    const step = { name: 'look', path: '/jobs/1', fails: [{ expect: { '$.a': '1' }, says: 'it is one' }] }
    return await byStep(run({ url: `${server.origin}/v1`, steps: [step] }))
  }
  await finds(one({ a: 1 }), ['look', /^look: it is one \(GET/])
  await finds(one({ a: 2 }), 'look ok')
  await finds(one({}), 'look ok')
})

test('an unexpected status ends the wait at once, and an expected one does not', async () => {
  const behave = (n: number): Reply => (n < 2 ? { status: 404, body: 'none' } : state('done'))
  await using strict = await jobs(behave)
  await finds(byStep(run(job(strict, waitFor({})))), [
    'done',
    /was answered 404, sent 1 time in [\d.]+ m?s \(expected 2xx\)$/,
  ])
  await using patient = await jobs(behave)
  await finds(byStep(run(job(patient, waitFor({}, { status: ['2xx', 404] })))), 'done ok')
  expect(looksAt(patient)).toBe(2)
})

test('a status alone may end the wait', async () => {
  await using server = await jobs((n) => ({ status: n < 3 ? 202 : 200 }))
  const wait = { name: 'done', path: '/jobs/1', until: { status: [200], every: '100ms', most: 5 } }
  await finds(byStep(run(job(server, wait))), 'done ok')
  await using never = await jobs(() => ({ status: 202 }))
  await finds(byStep(run(job(never, wait))), ['done', /last answer: the answer was 202 \(expected 200\)$/])
})

test('a path that begins with a slash selects from XML in all expectations', async () => {
  await using server = await jobs((n) => ({ body: `<job state="${n < 2 ? 'running' : 'done'}"><v>good</v></job>` }))
  const wait = waitFor({ expect: { '/job/@state': 'done' } }, { expect: { '/job/v': 'good', 'count(/job/v)': '1' } })
  await finds(byStep(run(job(server, wait))), ['done', /sent 2 times/])
  expect(server.requests().at(-3)?.headers.accept).toMatch(/^application\/xml/)
  const bad = waitFor({ expect: { '/job/@state': 'done' } }, { expect: { '/job/v': 'bad' } })
  await finds(byStep(run(job(server, bad))), ['done', /\/job\/v is "good", expected "bad"$/])
})

test('a connection that breaks is reported with the number of its request', async () => {
  await using server = await jobs((n) => (n < 3 ? state('running') : 'reset'))
  const results = await run(job(server, waitFor({})))
  await finds(byStep(results), ['done failed (protocol)', /^done: GET \/v1\/jobs\/job%2F7 \(request 3\): 127/])
})

test('a run that is cancelled while it waits sends no more, runs its cleanup, and leaves nothing open', async () => {
  const cancel = new AbortController()
  await using server = await jobs(() => {
    setTimeout(() => cancel.abort(), 20)
    return state('running')
  })
  const raw = job(server, waitFor({ every: '10m' }))
  await expect(run(raw, { signal: cancel.signal })).rejects.toThrow()
  expect(server.requestLines()).toEqual(['POST /v1/jobs', 'GET /v1/jobs/job%2F7', 'DELETE /v1/jobs/job%2F7'])
  await expect.poll(() => server.open()).toBe(0)
})

test('captured values are never shown, not even in the last answer', async () => {
  await using server = await jobs(() => state('job/7 waits'))
  const results = await run(job(server, waitFor({ within: '250ms' }), { show: [] }))
  await finds(byStep(results), 'done: …last answer: $.state is "[secret] waits"…')
  expect(JSON.stringify(results)).not.toContain('job/7')
})

test('`values` are not secret, and are shown', async () => {
  await using server = await jobs(states('x'))
  const raw = { url: server.origin, values: { clip: 'a b/1' }, steps: [{ name: 'see', path: `/see/\${clip}` }] }
  await finds(byStep(run(raw)), ['see', /^see: GET \/see\/a%20b%2F1 was answered 200/])
})

test('a value of the run is compared literally, never as a pattern', async () => {
  await using open = await jobs(states('running'))
  const values = { values: { clip: '/.*/' } }
  const never = await run(job(open, waitFor({ expect: { '$.state': `\${clip}` }, most: 2 }), values))
  await finds(byStep(never), ['done', /is not finished, sent 2 times/])
  await using server = await jobs((n) => state(n < 2 ? 'other' : 'job/7'))
  await finds(byStep(run(job(server, waitFor({ expect: { '$.state': `\${job}` } })))), ['done', /sent 2 times/])
})

test.each<[string, Raw, Raw]>([
  ['a bearer token', { token: { env: 'TOKEN' } }, { authorization: `Bearer ${env.TOKEN}` }],
  ['a token in a header', { token: { env: 'TOKEN' }, tokenHeader: 'X-Key' }, { 'x-key': env.TOKEN }],
  [
    'a password',
    { username: 'monitor', password: { env: 'TOKEN' } },
    { authorization: `Basic ${Buffer.from(`monitor:${env.TOKEN}`).toString('base64')}` },
  ],
  ['nothing, where nothing is given', {}, {}],
])('with `signed`, %s accompanies each step except those that sign in', async (_, more, headers) => {
  await using server = await jobs(states('done'))
  const raw = job(server, waitFor({}), { signed: true, ...more })
  const signIn = { name: 'in', method: 'POST', path: '/in', signIn: true }
  await run({ ...raw, steps: [signIn, ...(raw['steps'] as Raw[])] })
  const [first, ...rest] = server.requests().map((request) => {
    const { authorization, 'x-key': key } = request.headers
    return { ...(authorization === undefined ? {} : { authorization }), ...(key === undefined ? {} : { 'x-key': key }) }
  })
  expect(first).toEqual({})
  expect(rest).toHaveLength(4)
  for (const sent of rest) expect(sent).toEqual(headers)
})

test('a signed step that is refused is a sign-in fault, and the next run does not repeat it', async () => {
  await using server = await jobs(() => ({ status: 401 }))
  const sharedLimits = limits()
  const raw = {
    url: `${server.origin}/v1`,
    signed: true,
    token: { env: 'WRONG' },
    steps: [waitFor({}, { path: '/jobs/1' })],
  }
  const [, first] = await run(raw, { limits: sharedLimits, retries: 2 })
  expect(first).toMatchObject({ status: 'failed', fault: 'auth' })
  const [second] = await run(raw, { limits: sharedLimits })
  expect(second?.message).toMatch(/^refused: /)
  expect(looksAt(server)).toBe(1)
  expect(JSON.stringify([first, second])).not.toContain(env.WRONG)
})

const one = (step: Raw, more: Raw = {}): Raw => ({
  url: 'http://127.0.0.1/api',
  allowWrites: true,
  steps: [{ name: 'a', path: '/a', ...step }],
  ...more,
})
const until = { expect: { '$.a': '1' } }

test.each<[string, Raw, RegExp]>([
  ['POST', one({ method: 'POST', until }), /^step "a" sends POST and has until: only GET and HEAD are repeated$/],
  ['a sign-in', one({ signIn: true, until }), /^step "a" has both signIn and until: a sign-in is sent only once$/],
  [
    'an FTP step',
    one({ path: undefined, ftp: { host: 'h', username: 'u', password: `\${probePassword}` }, until }),
    /no answer for until/,
  ],
  ['nothing that ends it', one({ until: { every: '1s' } }), /has until without expect or status: add one of them$/],
  ['a body of HEAD', one({ method: 'HEAD', until }), /HEAD has no body to evaluate$/],
  [
    '99 ms',
    one({ until: { ...until, every: '99ms' } }),
    /repeats its request every 99 ms: set every to 100ms or more$/,
  ],
  ['a path', one({ until: { expect: { state: 'x' } } }), /^is neither a JSON path .*: write \$\.state$/],
  ['an XML path', one({ expect: { '/a[': 'x' } }), /^is neither a JSON path such as .* nor an XML path such as/],
  ['a failure without values', one({ fails: [{ expect: {}, says: 'x' }] }), /has fails without a value in expect$/],
  ['a failure of a path', one({ fails: [{ expect: { x: '1' }, says: 'x' }] }), /: write \$\.x$/],
  [
    'a value that nothing gives',
    one({ until: { expect: { '$.a': `\${id}` } } }),
    /uses \$\{id\}, which no earlier step captures/,
  ],
  ['half a value', one({ until: { expect: { '$.a': `x\${probe}` } } }), /use a \$\{value\} alone, or none$/],
  ['a value that is given', one({}, { values: { token: 'x' } }), /^values may not contain the built-in name token$/],
  ['a value without a name', one({}, { values: { 'a b': 'x' } }), /^values contains the name "a b"/],
  [
    'a capture over a value',
    one({ capture: { id: '$.id' } }, { values: { id: 'x' } }),
    /may not capture the built-in name id/,
  ],
  [
    'two ways to sign',
    one({}, { signed: true, authorization: `Bearer \${token}`, token: { env: 'TOKEN' } }),
    /^signed and authorization exclude/,
  ],
  [
    'two credentials',
    one({}, { signed: true, username: 'u', password: { env: 'TOKEN' }, token: { env: 'TOKEN' } }),
    /^signed needs a token or a password/,
  ],
  [
    'a header of ours',
    one({}, { signed: true, token: { env: 'TOKEN' }, tokenHeader: 'Cookie' }),
    /^tokenHeader may not be Cookie$/,
  ],
  ['a header that nothing fills', one({}, { tokenHeader: 'X-Key' }), /^tokenHeader needs signed: true$/],
])('%s is refused before anything is sent', (_, raw, says) => {
  const { path, ...rest } = (raw['steps'] as Raw[])[0] ?? {}
  const all = { ...raw, steps: [path === undefined ? rest : { path, ...rest }] }
  const [problem] = readSettings(steps.settings, all, { env: {}, folder: '/' }).problems
  expect(problem?.message ?? steps.validate?.(settingsOf(all))).toMatch(says)
})

test('a status that no answer has is refused by its setting', () => {
  const raw = one({ until: { status: ['ok'] } })
  const { problems } = readSettings(steps.settings, raw, { env: {}, folder: '/' })
  expect(problems).toEqual([
    { path: ['steps', 0, 'until', 'status', 0], message: expect.stringMatching(/^is "ok", which no answer has/) },
  ])
})

test('a pause of 100 ms is accepted', () => {
  expect(steps.validate?.(settingsOf(one({ until: { ...until, every: '100ms' } })))).toBeUndefined()
})
