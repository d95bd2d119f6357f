import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { Fault } from '../../src/core/base/errors.ts'
import { openClient } from '../../src/core/client/index.ts'
import { runMediaType } from '../../src/core/protocol/index.ts'

const now = new Date('2026-03-01T03:00:00Z')
const ago = (seconds: number): Date => new Date(now.getTime() - seconds * 1_000)

type Answer = {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly type: string
  readonly body: object
}

/** A document of the interface that ended `seconds` before the answer. */
const document = (seconds = 0): Pick<Answer, 'type' | 'body'> => ({
  type: 'application/json',
  body: {
    Status: 'Success',
    StatusMessage: 'fine',
    MonitorSummaries: [{ MonitorName: 'http', Status: 'Success' }],
    ExecutionMetrics: { EndDateTime: `/Date(${ago(seconds).getTime()}-0000)/` },
  },
})
/** A run that ended `seconds` before the answer. */
const run = (seconds = 0, more: object = {}): Pick<Answer, 'type' | 'body'> => ({
  type: runMediaType,
  body: {
    ...{ version: 1, type: 'App', mode: 'Standard', view: 'full', status: 'ok', message: 'fine', durationMs: 1 },
    ...{ startedAt: ago(seconds), endedAt: ago(seconds) },
    monitors: [
      { kind: 'http', name: 'http', status: 'ok', results: [{ check: 'status', status: 'ok', message: 'fine' }] },
    ],
    ...more,
  },
})

/** Asks a simulated server for a new run, or for any with `fresh: false`: the answer, or the message of the Fault. */
async function asking({ status = 200, headers = {}, type, body }: Answer, fresh = true): Promise<string> {
  const server = createServer((_, response) => {
    response.writeHead(status, { Date: now.toUTCString(), 'Content-Type': type, ...headers }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const client = openClient({
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    userAgent: 'test',
  })
  const call = {
    caller: { kind: 'local', account: 'ann' },
    correlationId: 'c',
    signal: new AbortController().signal,
    fresh,
  } as const
  try {
    const answer = await client.healthCheck({ ExecutionMode: 'Standard', ServerType: 'App' }, call)
    return `${answer.Status}: ${answer.StatusMessage}`
  } catch (error) {
    if (error instanceof Fault) return `${error.exitCode}: ${error.message}`
    throw error
  }
}

test.each([
  ['a document', document],
  ['a run', run],
])(
  'C10 a new run that ended within the life of a result is accepted as %s of a simulated server',
  async (_what, make) => {
    for (const seconds of [0, 10]) expect(await asking({ ...make(seconds) })).toBe('Success: fine')
    expect(await asking({ ...make(), headers: { Age: '10' } })).toBe('Success: fine')
  },
)

test.each([
  ['a document', document],
  ['a run', run],
])(
  'C10 %s of a simulated cache in place of a new run is exit 8, by its Age or by the Date of the same answer',
  async (_what, make) => {
    expect(await asking({ ...make(), headers: { Age: '11' } })).toMatch(
      /^8: a cache answered for .+: the result is 11 s old$/,
    )
    expect(await asking({ ...make(3_600) })).toMatch(/^8: a cache answered for .+: the result is 3600 s old$/)
    // --cached accepts it.
    expect(await asking({ ...make(3_600), headers: { Age: '3600' } }, false)).toBe('Success: fine')
  },
)

test('C10 the clock of this machine is not compared: the dates above are of another year', async () => {
  expect(Math.abs(Date.now() - now.getTime())).toBeGreaterThan(86_400_000)
  expect(await asking({ ...document(), headers: { Date: '' } })).toBe('Success: fine')
})

test.each([400, 404, 500, 503])(
  'C9 Success with the HTTP status %s of a simulated server is a Failure',
  async (status) => {
    const expected = `Failure: the server reports Success, which contradicts its HTTP status ${status} (fine)`
    expect(await asking({ ...document(), status })).toBe(expected)
    expect(await asking({ ...run(), status })).toBe(expected)
  },
)

test('C10 a run of another type or another depth of a simulated server is exit 8', async () => {
  const other = / answered with a run of Sql in Standard, and not of App in Standard$/
  expect(await asking(run(0, { type: 'Sql' }))).toMatch(/^8: /)
  expect(await asking(run(0, { type: 'Sql' }))).toMatch(other)
  expect(await asking(run(0, { mode: 'Basic' }))).toMatch(
    /^8: .+ answered with a run of App in Basic, and not of App in Standard$/,
  )
})
