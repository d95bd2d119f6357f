import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent, createServer, request as httpRequest, type Server } from 'node:http'
import { type AddressInfo, connect, createServer as createTcp, type Server as TcpServer } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { HealthCheckResponse } from '../../src/core/protocol/index.ts'
import type { Calls } from '../support/faults/shortage.ts'
import { password, type ServeProcess, startServeProcess, userName } from '../support/program/serve-program.ts'
import { NotStarted } from '../support/suite/daemon.ts'
import { until } from '../support/suite/until.ts'

/** Results grow old by as much before each question, so that each has a run of its own. Milliseconds. */
const olderMs = 120_000

type Answer = { readonly status: number; readonly text: string }
type Question = {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** The same question where putting it again would find everything done: with another role, another session. */
  readonly another?: (number: number, ask: Ask) => Promise<Question>
  /** One that differs from another in its format alone. */
  readonly sameInside?: true
}
type Ask = (question: Question) => Promise<Answer>

/** Asks over one connection, which is open before anything fails. */
function asker({ port }: ServeProcess): { readonly ask: Ask; readonly close: () => void } {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return {
    ask: ({ method, path, headers = {}, body }) =>
      new Promise((resolve, reject) => {
        const outgoing = httpRequest(
          { agent, host: '127.0.0.1', port, method, path, headers, timeout: 20_000 },
          (incoming) => {
            let text = ''
            incoming.setEncoding('utf8')
            incoming.on('data', (part) => {
              text += String(part)
            })
            incoming.on('error', reject)
            incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, text }))
          },
        )
        outgoing.on('timeout', () => outgoing.destroy(new Error(`${method} ${path} is not answered`)))
        outgoing.on('error', reject)
        outgoing.end(body)
      }),
    close: () => agent.destroy(),
  }
}

const json = { 'content-type': 'application/json' }
const signIn: Question = {
  name: 'sign in',
  method: 'POST',
  path: '/auth/credentials',
  headers: json,
  body: JSON.stringify({ UserName: userName, Password: password }),
}
const readiness: Question = { name: 'readiness', method: 'GET', path: '/readyz' }
const health = (mode: string, type: string, more = ''): Question => ({
  name: `health of ${type}, ${mode}${more}`,
  method: 'GET',
  path: `/healthcheck?ExecutionMode=${mode}&ServerType=${type}&IncludeServerStateInformation=true&SuppressErrorCodes=true${more}`,
  headers: { 'cache-control': 'no-cache' },
})

const tokensOf = ({ text }: Answer) =>
  JSON.parse(text) as { readonly BearerToken: string; readonly RefreshToken: string }
const signOut = (token: string): Question => ({
  name: 'sign out',
  method: 'DELETE',
  path: '/auth',
  headers: { authorization: `Bearer ${token}` },
})

/**
 * The requests of a caller in a life with this server: signed in with these tokens, and under an address of its own.
 */
function questions(signedIn: Answer, host: string): readonly Question[] {
  const { BearerToken, RefreshToken } = tokensOf(signedIn)
  const bearer = { authorization: `Bearer ${BearerToken}` }
  const post = (name: string, path: string, body: object): Question => ({
    name,
    method: 'POST',
    path,
    headers: { ...json, ...bearer },
    body: JSON.stringify(body),
  })
  const get = (name: string, path: string, headers: Readonly<Record<string, string>> = {}): Question => ({
    name,
    method: 'GET',
    path,
    headers: { host, ...headers },
  })
  return [
    get('who am I', '/auth', bearer),
    ...(['/assignroles', '/unassignroles'] as const).map((path): Question => {
      const change = (role: string): Question => post(path, path, { UserName: userName, Roles: [role] })
      return { ...change('Editor'), another: async (number) => change(`Editor-${number}`) }
    }),
    post('heartbeat', '/heartbeats/agent-1', { Status: 'Ok' }),
    { ...post('refresh', '/access-token', { RefreshToken }), headers: json },
    health('Basic', 'Batch'),
    health('Standard', 'App'),
    health('Standard', 'Sql'),
    health('Advanced', 'Agents'),
    ...['nagios', 'prtg', 'prometheus', 'csv'].map((format) => health('Basic', 'Identity', `&format=${format}`)),
    get('metrics', '/metrics'),
    get('page', '/'),
    get('OpenAPI', '/openapi.json'),
    get('interface', '/metadata'),
    get('TypeScript', '/types/typescript'),
    {
      name: 'sign in by CSV',
      sameInside: true,
      method: 'POST',
      path: '/auth/credentials',
      headers: { 'content-type': 'text/csv' },
      body: `UserName,Password\r\n${userName},${password}\r\n`,
    },
    {
      name: 'sign in by multipart',
      sameInside: true,
      method: 'POST',
      path: '/auth/credentials',
      headers: { 'content-type': 'multipart/form-data; boundary=b' },
      body: `--b\r\nContent-Disposition: form-data; name="UserName"\r\n\r\n${userName}\r\n--b\r\nContent-Disposition: form-data; name="Password"\r\n\r\n${password}\r\n--b--\r\n`,
    },
    { ...signOut(BearerToken), another: async (_, ask) => signOut(tokensOf(await ask(signIn)).BearerToken) },
  ]
}

/** Without those that differ from another in their format alone: each hashes a password. */
const unlike = (all: readonly Question[]): readonly Question[] => all.filter(({ sameInside }) => !sameInside)

/** A peer that sends one line of XML on each connection, over HTTP and on its own. */
async function startPeers() {
  const web = createServer((_, response) => response.end('<a>1</a>')).listen(0, '127.0.0.1')
  const line = createTcp((socket) => socket.on('error', () => {}).end('<a>1</a>\n')).listen(0, '127.0.0.1')
  await Promise.all([once(web, 'listening'), once(line, 'listening')])
  const portOf = (server: Server | TcpServer): number => (server.address() as AddressInfo).port
  return {
    http: portOf(web),
    tcp: portOf(line),
    close: () => {
      web.closeAllConnections()
      web.close()
      line.close()
    },
  }
}
let peers: Awaited<ReturnType<typeof startPeers>>
beforeAll(async () => {
  peers = await startPeers()
})
afterAll(() => peers.close())

/** Without the host block where a run is repeated often: it measures for half a second. */
const yaml = (folder: string): string => `
types:
  App:
    host: false
    monitors:
      - {kind: http, url: 'http://127.0.0.1:${peers.http}/', xml: {/a: '1'}}
      - {kind: tcp, host: 127.0.0.1, port: ${peers.tcp}, expect: a, xml: {/a: '1'}}
      - {kind: deployment, expected: '1', versionFile: '${folder}/version'}
      - {kind: file-age, path: '${folder}/store', for: 1h}
  Sql:
    host: false
    monitors:
      - {kind: sqlite, path: '${folder}/store/svc.db'}
  Agents:
    host: false
    monitors:
      - {kind: heartbeat, agents: [agent-1], for: 1h}
`

/** A serve for one test, and its one caller. */
async function withServe(
  options: Parameters<typeof startServeProcess>[0],
  use: (serve: ServeProcess, ask: Ask) => Promise<void>,
): Promise<void> {
  const serve = await startServeProcess(options)
  const { ask, close } = asker(serve)
  try {
    await use(serve, async (question) => {
      await serve.order({ type: 'pass', ms: olderMs })
      return await ask(question)
    })
  } finally {
    close()
    // Not on its own, and not because of an uncaught error.
    expect(await serve.stop(), serve.log().slice(-2_000)).toBe(0)
  }
}

/** The content of an answer but for times and figures: its status, and each thing that is not well. */
function essence({ status, text }: Answer): readonly unknown[] {
  const summaries = /^\{"Status":/.test(text) ? ((JSON.parse(text) as HealthCheckResponse).MonitorSummaries ?? []) : []
  const failed = summaries.flatMap(({ MonitorName, Results = [] }) =>
    Results.filter(({ Status }) => Status === 'Failure').map(
      (one) => `${MonitorName}/${one.MonitoringName}: ${one.StatusMessage}`,
    ),
  )
  return [status, ...failed]
}

test('no request loads a module: all are loaded before svc serve listens', async () => {
  await withServe({ yaml }, async (serve, ask) => {
    const start = await serve.order({ type: 'reset' })
    expect(start.loaded.length).toBeGreaterThan(50)
    for (const question of questions(await ask(signIn), 'localhost')) await ask(question)
    const { count, loaded } = await serve.order({ type: 'reset' })
    expect(loaded).toEqual([])
    // The counters include the checks of these runs.
    expect(Math.min(count.files, count.store)).toBeGreaterThan(20)
  })
})

/** The reloads that have ended so far. */
const reloadsOf = (serve: ServeProcess): number => serve.log().split(/"(?:not )?reloaded[:;] /).length - 1

/** Reloads, and waits for the outcome. */
async function reloaded(serve: ServeProcess): Promise<string> {
  const before = reloadsOf(serve)
  serve.signal('SIGHUP')
  await until(() => reloadsOf(serve) > before, 60_000)
  return (
    serve
      .log()
      .split('\n')
      .findLast((line) => /"(?:not )?reloaded[:;] /.test(line)) ?? ''
  )
}

/** Monitors that a svc.yaml may have besides those of the start, of the same kinds. */
const more = `
profiles:
  pair: {monitors: [{kind: tcp, name: first, host: 127.0.0.1, port: 1, expect: /a+/}]}
`
const moreOfApp = `      - {profile: pair, name: both}
      - {kind: tcp, name: new, formerly: App/tcp/old, host: 127.0.0.1, port: 1}
`

test('W9 no reload loads a module, unless svc.yaml names a kind that it did not have or has a mistake', async () => {
  await withServe({ yaml }, async (serve) => {
    await serve.order({ type: 'reset' })
    const text = readFileSync(serve.config, 'utf8')
    writeFileSync(serve.config, `${text.replace('  Sql:\n', `${moreOfApp}  Sql:\n`)}${more}`)
    expect(await reloaded(serve)).toContain('reloaded: 2 added, 0 removed, 0 changed')
    const { count, loaded } = await serve.order({ type: 'reset' })
    expect(loaded).toEqual([])
    expect(count.files).toBeGreaterThan(0)
  })
})

test('W9 each call to the file system fails once in a reload (simulated), and the next reload succeeds', async () => {
  await withServe({ yaml }, async (serve, ask) => {
    const text = readFileSync(serve.config, 'utf8')
    let refused = 0
    for (let after = 0; ; after += 1) {
      await serve.order({ type: 'reset' })
      await serve.order({ type: 'fail', calls: 'files', after, times: 1 })
      writeFileSync(
        serve.config,
        text.replace('  Sql:\n', `      - {kind: tcp, name: n${after}, host: a, port: 1}\n  Sql:\n`),
      )
      const first = await reloaded(serve)
      const { count } = await serve.order({ type: 'reset' })
      if (first.includes('not reloaded')) refused += 1
      expect(await reloaded(serve), `after ${after} calls`).toMatch(/"reloaded: /)
      expect((await ask(readiness)).status).toBe(200)
      if (count.files <= after) break
    }
    expect(refused).toBeGreaterThan(2)
  })
}, 240_000)

/**
 * Puts each question to a serve that has answered nothing yet, again and again, and has the first, the second and every
 * further call fail that it makes. Put once more, each must be answered as by a serve to which nothing has happened.
 */
async function failEach(calls: Calls, times: number): Promise<number> {
  let failed = 0
  await withServe({ yaml }, async (_, askUsual) => {
    await withServe({ yaml }, async (serve, ask) => {
      const failEachOf = async (question: Question, usual: readonly unknown[]): Promise<void> => {
        for (let after = 0; ; after += 1) {
          const where = `${question.name}, after ${after} calls`
          const put = (await question.another?.(after, ask)) ?? question
          await serve.order({ type: 'reset' })
          await serve.order({ type: 'fail', calls, after, times })
          expect((await ask(put)).status, where).toBeLessThan(600)
          const { count } = await serve.order({ type: 'reset' })
          expect(essence(await ask(put)), where).toEqual(usual)
          expect((await ask(readiness)).status, where).toBe(200)
          if (count[calls] <= after) return
          failed += 1
        }
      }
      await failEachOf(signIn, [200])
      const usual = questions(await askUsual(signIn), 'localhost')
      for (const [index, question] of questions(await ask(signIn), 'localhost').entries()) {
        if (!question.sameInside) await failEachOf(question, essence(await askUsual(usual[index] ?? question)))
      }
    })
  })
  return failed
}

test('each call to the file system fails once (simulated), and the same request then succeeds', async () => {
  expect(await failEach('files', 1)).toBeGreaterThan(20)
}, 240_000)

test('each statement of the store fails, as does the rollback after it (simulated), and the same request then succeeds', async () => {
  // A statement is prepared once and executed at each request.
  expect(await failEach('store', 2)).toBeGreaterThan(50)
}, 240_000)

test('with any number of free descriptors, from none on, requests are answered, and they succeed once there are more', async () => {
  await withServe({ yaml, descriptors: 128 }, async (serve, ask) => {
    // The connection is open before the descriptors are used up, and there is no sign-in yet.
    expect((await ask(readiness)).status).toBe(200)
    let refused = 0
    for (let free = 0; free <= 8; free += 1) {
      await serve.order({ type: 'hold', free })
      const signedIn = await ask(signIn)
      // A base address of its own, for which the interface is described anew.
      const some = signedIn.status === 200 ? unlike(questions(signedIn, `localhost:${1_000 + free}`)) : []
      const during = []
      for (const question of some) during.push(await ask(question))
      await serve.order({ type: 'release' })
      refused += [signedIn, ...during].filter((answer) => essence(answer).length > 1 || answer.status !== 200).length
      const again = await ask(signIn)
      expect(again.status, `${free} left`).toBe(200)
      for (const question of unlike(questions(again, `localhost:${1_000 + free}`))) {
        expect(essence(await ask(question)), `${question.name}, after ${free} were left`).toEqual([200])
      }
      expect((await ask(readiness)).status).toBe(200)
    }
    // Else nothing was in want of any.
    expect(refused).toBeGreaterThan(0)
  })
}, 240_000)

test.runIf(process.platform === 'linux')(
  'the first sign-in arrives while idle connections use all descriptors, and sign-in works once they close',
  async () => {
    await withServe({ descriptors: 64 }, async (serve, ask) => {
      expect((await ask(readiness)).status).toBe(200)
      const open = (): number => readdirSync(`/proc/${serve.pid}/fd`).length
      const idle = Array.from({ length: 150 }, () => connect(serve.port, '127.0.0.1').on('error', () => {}))
      try {
        await until(() => open() >= 64)
        expect([200, 500, 503]).toContain((await ask(signIn)).status)
        const elsewhere = asker(serve)
        await elsewhere.ask(signIn).catch(() => {})
        elsewhere.close()
      } finally {
        for (const socket of idle) socket.destroy()
      }
      await until(() => open() < 60)
      expect((await ask(signIn)).status).toBe(200)
      expect((await ask(readiness)).status).toBe(200)
    })
  },
)

test('a start-up that cannot open a file ends with exit code 12 and a message, or serves everything', async () => {
  const whole = await startServeProcess({ yaml })
  const { count } = await whole.order({ type: 'reset' })
  await whole.stop()
  // A sample, spread over the whole start: each is a process of its own.
  const samples = 8
  const ends = { refused: 0, serves: 0 }
  for (let sample = 1; sample <= samples; sample += 1) {
    const failAt = Math.floor((count.files * sample) / samples) - 1
    try {
      await withServe({ yaml, failAt }, async (serve, ask) => {
        await serve.order({ type: 'reset' })
        for (const question of unlike(questions(await ask(signIn), 'localhost'))) {
          expect(essence(await ask(question)), `${question.name}, started without call ${failAt}`).toEqual([200])
        }
        expect((await serve.order({ type: 'reset' })).loaded).toEqual([])
      })
      ends.serves += 1
    } catch (error) {
      if (!(error instanceof NotStarted)) throw error
      expect(error.log, `call ${failAt}`).toMatch(/^Error: .*too many files open/)
      expect(error.ending).toBe(12)
      ends.refused += 1
    }
  }
  expect(ends.refused).toBeGreaterThan(samples / 2)
}, 240_000)
