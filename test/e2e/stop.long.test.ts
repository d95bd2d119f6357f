import { expect, test } from 'vitest'
import { early } from '../server/scheduled-web.ts'
import { blackHole, peer, speaks } from '../support/faults/faults.ts'
import { startServeProcess } from '../support/program/serve-process.ts'
import { until } from '../support/suite/until.ts'
import { get, type Outcome, openConnection, write } from '../support/wire/exchange.ts'

const check = get('/healthcheck?ExecutionMode=Basic&ServerType=App')

const yamlFor = (port: number): string =>
  `types:\n  App:\n    - {kind: tcp, name: slow, host: 127.0.0.1, port: ${port}, expect: hello, depth: Basic, timeout: 5s, latency: {warn: 4s, limit: 5s}}\n`

/** `200`, `503`, or what happened instead of an answer. */
const summary = ({ answers, rest, error }: Outcome): string =>
  answers.map(({ status }) => status).join(' ') || `no answer, ${error ?? 'closed'}, ${rest.length} bytes`

test('S9 SIGTERM answers each unread request and each call that waits for a run, and exits with 0', async () => {
  await using slow = await peer(speaks('hello\n', 2_500))
  await using serve = await startServeProcess(yamlFor(slow.port))
  const { port } = serve
  const open = (count: number) => Promise.all(Array.from({ length: count }, () => openConnection(port)))

  const calls = await open(48)
  const idle = await open(24)
  const silent = await open(24)
  for (const { socket } of idle) await write(socket, get('/livez'))
  for (const { socket } of calls) await write(socket, check)
  const inFlight = async (): Promise<number> => {
    const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    return Number(/^svc_http_requests_in_flight (\d+)$/m.exec(page)?.[1])
  }
  // The 48 calls, and the one that asks.
  await until(async () => (await inFlight()) === 49)

  // While the process stands still, the kernel accepts connections for it and keeps what they send.
  serve.signal('SIGSTOP')
  const queued = await open(96)
  for (const { socket } of [...queued, ...idle, ...silent]) await write(socket, check)
  serve.signal('SIGTERM')
  serve.signal('SIGCONT')

  const outcomes = async (group: typeof calls): Promise<readonly Outcome[]> =>
    await Promise.all(group.map(({ outcome }) => outcome))
  const answered = { called: await outcomes(calls), unread: await outcomes([...queued, ...silent]) }
  expect(answered.called.map(summary)).toEqual(answered.called.map(() => '200'))
  expect(answered.unread.map(summary).filter((text) => text !== '200' && text !== '503')).toEqual([])
  expect((await outcomes(idle)).map(summary).filter((text) => !/^200 (200|503)$/.test(text))).toEqual([])
  for (const { answers, rest } of [...answered.called, ...answered.unread]) {
    expect(rest).toBe('')
    expect(answers.at(-1)?.head).toMatch(/^Connection: close$/im)
  }
  expect(await serve.ended).toBe(0)
  expect(slow.connections()).toBe(1)
})

test('S9 calls that wait for checks longer than the limit are answered 503, and the process ends by itself', async () => {
  await using hole = await peer(blackHole)
  const yaml = `types:\n  App:\n    - {kind: tcp, name: hole, host: 127.0.0.1, port: ${hole.port}, expect: hello, timeout: 40s}\n`
  await using serve = await startServeProcess(yaml)
  const calls = await Promise.all(Array.from({ length: 48 }, () => openConnection(serve.port)))
  for (const { socket } of calls) await write(socket, get('/healthcheck?ExecutionMode=Advanced&ServerType=App'))
  await until(() => hole.connections() === 1)
  serve.signal('SIGTERM')
  const outcomes = await Promise.all(calls.map(({ outcome }) => outcome))
  expect(new Set(outcomes.map(summary))).toEqual(new Set(['503']))
  expect(outcomes.filter(({ error }) => error !== undefined)).toEqual([])
  expect(await serve.ended).toBe(0)
})

test('S9 W1 SIGTERM ends the runs of the schedule that are in progress, and the process ends by itself', async () => {
  await using hole = await peer(blackHole)
  const monitor = `{kind: tcp, name: ${early('App', 'tcp')}, host: 127.0.0.1, port: ${hole.port}, expect: hello, timeout: 10m, every: 10m}`
  await using serve = await startServeProcess(`types: {App: [${monitor}]}\n`)
  await until(() => hole.connections() > 0)
  serve.signal('SIGTERM')
  expect(await serve.ended).toBe(0)
  expect(await hole.open()).toBe(0)
  expect(serve.log()).not.toMatch(/"level":"(?:warn|error)"|unexpectedly/)
})

test.each([
  ['SIGTERM', 'SIGTERM'],
  ['SIGINT', 'SIGINT'],
  ['SIGINT', 'SIGTERM'],
] as const)(
  'S9 after %s it is not ready and still listens for its drain delay, and %s ends it at once',
  async (first, second) => {
    await using serve = await startServeProcess('types: {}\n', ['--drain-delay', '10m'])
    const status = async (path: string): Promise<number> =>
      (await fetch(`http://127.0.0.1:${serve.port}${path}`)).status
    expect(await status('/readyz')).toBe(200)
    serve.signal(first)
    await until(async () => (await status('/readyz')) === 503)
    expect(await status('/livez')).toBe(200)
    serve.signal(second)
    // As a shell sees it: 128 and the number of the signal.
    expect(await serve.ended).toBe(second)
  },
)

test('S9 without a drain delay it ends as soon as each request is answered', async () => {
  await using serve = await startServeProcess('types: {}\n', ['--drain-delay', '0s'])
  serve.signal('SIGTERM')
  expect(await serve.ended).toBe(0)
})
