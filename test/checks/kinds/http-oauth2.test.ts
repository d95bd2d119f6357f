import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { limits } from '../../../src/core/checks/engine/index.ts'
import http from '../../../src/core/checks/kinds/http/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { problemsOf, refused } from '../../config/given.ts'
import { checked, runKind, secret } from '../../support/engine/run-kind.ts'
import { client, startOidc } from '../../support/openid/oidc.ts'

/** A server of this test on loopback. */
async function serving(
  answer: (request: IncomingMessage, response: ServerResponse) => void | Promise<void>,
): Promise<string> {
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A simulated provider, and an API that accepts its latest token. */
async function simulated({
  expiresIn = 600,
  status = 200,
}: {
  readonly expiresIn?: number
  readonly status?: number
} = {}) {
  const state = {
    expiresIn,
    status,
    issued: 0,
    accepts: (token: string) => token === `t${state.issued}`,
    requests: [] as string[],
    tokensSent: [] as string[],
  }
  const tokens = await serving((request, response) => {
    let body = ''
    request.on('data', (part) => {
      body += String(part)
    })
    request.on('end', () => {
      state.requests.push(`${request.headers.authorization} ${body}`)
      if (state.status !== 200) {
        response.writeHead(state.status, { 'Content-Type': 'application/json', Location: '/elsewhere' })
        response.end(JSON.stringify({ error: state.status === 401 ? 'invalid_client' : 'server_error' }))
        return
      }
      state.issued += 1
      response.setHeader('Content-Type', 'application/json')
      response.end(
        JSON.stringify({ access_token: `t${state.issued}`, token_type: 'Bearer', expires_in: state.expiresIn }),
      )
    })
  })
  const api = await serving((request, response) => {
    const token = /^Bearer (.*)$/.exec(request.headers.authorization ?? '')?.[1] ?? ''
    state.tokensSent.push(token)
    response.statusCode = state.accepts(token) ? 200 : 401
    response.end(`you are ${token}`)
  })
  return { state, tokens: `${tokens}/token`, api }
}

/** Things that monitors of one process share. */
const shared = () => {
  let ms = 1_000
  const context = { services: {}, limits: limits(), now: () => ms, date: () => new Date(ms) }
  return {
    context,
    pass: (more: number): void => {
      ms += more
    },
  }
}
let paths = 0
type Peers = { readonly tokens: string; readonly api: string }
const run = async (
  { tokens, api }: Peers,
  { context }: ReturnType<typeof shared>,
  mode: ExecutionMode = 'Standard',
  more = {},
) =>
  await runKind(
    http,
    {
      // Monitors with the same settings would share one observation.
      url: `${api}/${++paths}`,
      oauth2: { tokenUrl: tokens, clientId: 'mon', clientSecret: secret('s3cret pass'), scopes: ['read', 'list'] },
      ...more,
    } as never,
    mode,
    context as never,
  )

test('H87 gets a token with the credentials of the client, and sends it (simulated provider)', async () => {
  const peers = await simulated()
  const results = await run(peers, shared())
  expect(results.filter(({ status }) => status !== 'ok')).toEqual([])
  const basic = Buffer.from('mon:s3cret+pass').toString('base64')
  expect(peers.state.requests).toEqual([`Basic ${basic} grant_type=client_credentials&scope=read+list`])
  expect(peers.state.tokensSent).toEqual(['t1'])
})

test('H87 H90 gets the token of a real provider (oidc-provider), which an API introspects, and none with another secret', async () => {
  const provider = await startOidc()
  onTestFinished(async () => await provider.close())
  const { clientId, clientSecret } = client
  const api = await serving(async ({ headers: { authorization = '' } }, response) => {
    const basic = [clientId, clientSecret].map((one) => new URLSearchParams({ '': one }).toString().slice(1)).join(':')
    const answer = await fetch(`${provider.issuer}/token/introspection`, {
      method: 'POST',
      headers: { Authorization: `Basic ${Buffer.from(basic).toString('base64')}` },
      body: new URLSearchParams({ token: authorization.replace(/^Bearer /, '') }),
    })
    response.end(await answer.text())
  })
  const process = shared()
  const oauth2 = { tokenUrl: `${provider.issuer}/token`, clientId, scopes: ['orders'] }
  const json = { '$.active': 'true', '$.client_id': clientId, '$.scope': 'orders' }
  const peers = { api, tokens: '' }
  const good = await run(peers, process, 'Standard', {
    oauth2: { ...oauth2, clientSecret: secret(clientSecret) },
    json,
  })
  expect(good.filter(({ status }) => status !== 'ok')).toEqual([])
  const [refused] = await run(peers, process, 'Standard', {
    oauth2: { ...oauth2, clientSecret: secret('wrong') },
    json,
  })
  expect([refused?.fault, refused?.message]).toEqual([
    'auth',
    expect.stringContaining('refused the client "svc-probe"'),
  ])
})

test('H87 Basic requests no token, and sends none', async () => {
  const peers = await simulated()
  await run(peers, shared(), 'Basic')
  expect([peers.state.requests, peers.state.tokensSent]).toEqual([[], ['']])
})

test('H88 one token serves all monitors that name the same client, until it ends (simulated provider)', async () => {
  const [peers, process] = [await simulated({ expiresIn: 600 }), shared()]
  await Promise.all([run(peers, process), run(peers, process), run(peers, process, 'Advanced')])
  await run(peers, process)
  expect(peers.state.issued).toBe(1)
  process.pass(600_000)
  await run(peers, process)
  expect(peers.state.issued).toBe(2)
  expect(new Set(peers.state.tokensSent)).toEqual(new Set(['t1', 't2']))
})

test.each([
  ['another scope', { scopes: ['write'] }],
  ['another client', { clientId: 'other' }],
  ['another secret', { clientSecret: secret('other') }],
])('H88 %s is another token (simulated provider)', async (_, other) => {
  const [peers, process] = [await simulated(), shared()]
  peers.state.accepts = () => true
  await run(peers, process)
  const oauth2 = {
    tokenUrl: peers.tokens,
    clientId: 'mon',
    clientSecret: secret('s3cret pass'),
    scopes: ['read', 'list'],
    ...other,
  }
  await run(peers, process, 'Standard', { oauth2 })
  expect(peers.state.issued).toBe(2)
})

test('H89 an API that answers 401 to a token from before gets a new one once, for all monitors together (simulated provider)', async () => {
  const [peers, process] = [await simulated(), shared()]
  await run(peers, process)
  peers.state.accepts = (token) => token === 't2'
  process.pass(120_000)
  const all = await Promise.all([run(peers, process), run(peers, process)])
  expect(all.flat().filter(({ status }) => status !== 'ok')).toEqual([])
  expect([peers.state.issued, peers.state.tokensSent.toSorted()]).toEqual([2, ['t1', 't1', 't1', 't2', 't2']])
})

test('H89 an API that refuses new tokens too fails, and makes svc request no more than one a minute (simulated provider)', async () => {
  const [peers, process] = [await simulated(), shared()]
  peers.state.accepts = () => false
  const first = checked(await run(peers, process), 'status')
  expect([first.status, first.fault]).toEqual(['failed', 'auth'])
  for (let more = 0; more < 5; more += 1) await run(peers, process)
  expect(peers.state.issued).toBe(1)
  process.pass(61_000)
  for (let more = 0; more < 5; more += 1) await run(peers, process)
  expect(peers.state.issued).toBe(2)
})

test('H90 a refused client is a refused sign-in: no monitor repeats it during the pause (simulated provider)', async () => {
  const [peers, process] = [await simulated({ status: 401 }), shared()]
  const first = checked(await run(peers, process), 'connect')
  expect([first.status, first.fault, first.message]).toEqual([
    'failed',
    'auth',
    expect.stringContaining('refused the client "mon": 401: invalid_client'),
  ])
  const other = await simulated()
  const others = await Promise.all([run(peers, process), run({ ...peers, api: other.api }, process)])
  expect(others.flat().map(({ check }) => check)).toEqual(['sign-in', 'sign-in'])
  expect([peers.state.requests.length, peers.state.tokensSent, other.state.tokensSent]).toEqual([1, [], []])
})

test.each([
  ['has an error', 500, 'no token'],
  ['redirects', 302, 'not followed'],
])(
  'H90 a monitor without a token, because the provider %s, is not checked: its server was not reached',
  async (_, status, says) => {
    const peers = await simulated({ status })
    const results = await run(peers, shared())
    expect(results.map(({ check, notChecked }) => [check, notChecked])).toEqual([['connect', 'missing']])
    expect(results[0]?.message).toContain(says)
    expect(peers.state.tokensSent).toEqual([])
  },
)

test('H90 a provider that cannot be reached leaves the monitor not checked', async () => {
  const peers = await simulated()
  const [result, ...more] = await run({ ...peers, tokens: 'http://127.0.0.1:1/token' }, shared())
  expect([result?.notChecked, result?.message, more]).toEqual(['missing', expect.stringContaining('127.0.0.1:1'), []])
})

test('H90 a refusal by the API of one monitor pauses no other', async () => {
  const [peers, process] = [await simulated(), shared()]
  peers.state.accepts = () => false
  await run(peers, process)
  peers.state.accepts = () => true
  expect((await run(peers, process)).filter(({ status }) => status !== 'ok')).toEqual([])
})

test('the token and the secret are in no message, also where the API repeats them', async () => {
  const [peers, process] = [await simulated(), shared()]
  await run(peers, process)
  peers.state.accepts = (token) => token === 't2'
  process.pass(120_000)
  const results = await run(peers, process, 'Standard', { matches: '/^nobody$/' })
  expect(JSON.stringify(results)).not.toMatch(/\bt[12]\b|s3cret/)
})

test.each([['http://id.example.test/token', 'oauth2.tokenUrl has to be https, or on loopback']])(
  '%s is a mistake of the file',
  async (tokenUrl, message) => {
    const oauth2 = `{tokenUrl: '${tokenUrl}', clientId: a, clientSecret: {env: X}}`
    const entry = (more: string): string =>
      `types:\n  App:\n    - {kind: http, url: 'https://a.test/', oauth2: ${oauth2}${more}}\n`
    expect(problemsOf(await refused(entry('')))).toEqual([expect.stringContaining(message)])
  },
)

test('oauth2 excludes token and password', async () => {
  const yaml = `types:\n  App:\n    - {kind: http, url: 'https://a.test/', token: {env: Y}, oauth2: {tokenUrl: 'https://a.test/t', clientId: a, clientSecret: {env: X}}}\n`
  expect(problemsOf(await refused(yaml))).toEqual([
    expect.stringContaining('token, password and oauth2 exclude each other'),
  ])
})
