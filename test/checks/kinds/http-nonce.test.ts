import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { readSettings } from '../../../src/core/base/settings/index.ts'
import http from '../../../src/core/checks/kinds/http/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { finds } from '../../support/engine/finds.ts'
import { checked, type RunKindOptions, runKind, secret } from '../../support/engine/run-kind.ts'
import { type HttpPeer, httpPeer } from '../../support/simulated/http-peer.ts'

type Echo = { readonly q: string | null; readonly head: string; readonly body: string }
type Settings = Parameters<typeof runKind<typeof http.settings>>[1]

/** Gives back, as JSON, what it was asked; `bend` makes it misbehave. */
const echoing = (bend: (said: Echo) => Echo = (echo) => echo): Promise<HttpPeer> =>
  httpPeer((request, response) => {
    void text(request).then((body) => {
      const q = new URL(request.url ?? '/', 'http://x').searchParams.get('q')
      const echo = bend({ q, head: String(request.headers['x-probe'] ?? ''), body })
      response.writeHead(200, { 'Content-Type': 'application/json', 'X-Echo': echo.head }).end(JSON.stringify(echo))
    })
  })

const look = (server: HttpPeer, path: string, more: Settings, mode: ExecutionMode = 'Standard', o?: RunKindOptions) =>
  runKind(http, { url: `${server.origin}${path}`, ...more }, mode, o)

describe('http nonce', () => {
  test('the nonce in the query, a header and the body comes back', async () => {
    await using server = await echoing()
    const results = await look(server, '/echo/{nonce}?q=a-{nonce}', {
      method: 'POST',
      headers: { 'X-Probe': 'h-{nonce}' },
      body: '{"ask": "{nonce}"}',
      header: { 'X-Echo': 'h-{nonce}' },
      contains: 'a-{nonce}',
      matches: '/"head":"h-{nonce}"/',
      json: { '$.q': 'a-{nonce}', '$.body': '{"ask": "{nonce}"}' },
    })
    expect(results.filter(({ status }) => status !== 'ok')).toEqual([])
    expect(results.map(({ check }) => check)).toEqual(expect.arrayContaining(['header', 'content', 'json']))
    const [request = ''] = server.requestLines()
    const [, first, second] = /^POST \/echo\/([0-9a-f]{16})\?q=a-([0-9a-f]{16})$/.exec(request) ?? []
    expect(first).toBeDefined()
    expect(second).toBe(first)
  })

  test('XML accepts it too', async () => {
    await using server = await httpPeer((request, response) => {
      response.writeHead(200, { 'Content-Type': 'application/xml' }).end(`<a q="${request.url?.slice(1)}"/>`)
    })
    await finds(look(server, '/{nonce}', { xml: { '/a/@q': '{nonce}' } }), 'xml ok')
    await finds(look(server, '/x?{nonce}', { xml: { '/a/@q': '{nonce}' } }), 'xml failed')
  })

  test('an answer from a cache is detected, and the message shows the expected nonce', async () => {
    let cache: Echo | undefined
    await using server = await echoing((echo) => {
      cache ??= echo
      return cache
    })
    const ask = async () => checked(await look(server, '/?q={nonce}', { json: { '$.q': '{nonce}' } }), 'json')
    expect((await ask()).status).toBe('ok')
    const cached = await ask()
    expect(cached).toMatchObject({ status: 'failed', fault: 'data' })
    expect(cached.message).toMatch(/\$\.q is "[0-9a-f]{16}", expected "[0-9a-f]{16}"$/)
    const [first, second] = server.requestLines().map((line) => line.slice(-16))
    expect(cached.message).toContain(`is "${first}", expected "${second}"`)
  })

  test('each address and each attempt has a nonce of its own', async () => {
    await using server = await echoing()
    const url = `http://two.test:${server.port}/?q={nonce}`
    const resolve = () => Promise.resolve(['127.0.0.1', '127.0.0.1'])
    await runKind(http, { url, status: ['299'] }, 'Standard', { resolve, retries: 1 })
    expect(new Set(server.requestLines()).size).toBe(4)
  })

  test('a secret is sent unchanged, whatever it contains', async () => {
    await using server = await echoing()
    const settings = { token: secret('t{nonce}oken'), tokenHeader: 'X-Probe', json: { '$.q': '{nonce}' } }
    await finds(look(server, '/?q={nonce}', settings), 'json ok')
    expect(server.requests()[0]?.headers['x-probe']).toBe('t{nonce}oken')
  })

  test('text that only resembles the placeholder is sent unchanged', async () => {
    await using server = await echoing()
    await look(server, '/?q=\x24{nonce}', { headers: { 'X-Probe': '\x24{nonce} {Nonce}' } })
    expect(server.requests()[0]?.headers['x-probe']).toBe('\x24{nonce} {Nonce}')
    expect(server.requestLines()).toEqual(['GET /?q=\x24{nonce}'])
  })

  test.each([
    ['the host', 'http://{nonce}.example:8080/'],
    ['a part of the host', 'https://a-{nonce}.example/{nonce}'],
    ['the host without slashes', 'http:{nonce}.example/'],
    ['the host before a query', 'http://x.example{nonce}?q=1'],
    ['the user', 'http://{nonce}@x.example/'],
    ['the password', 'http://u:{nonce}@x.example/'],
  ])('a nonce in %s is refused before any request: it would decide who gets the credentials', async (_, url) => {
    let requestCount = 0
    const resolve = () => {
      requestCount += 1
      return Promise.resolve(['192.0.2.7'])
    }
    await finds(runKind(http, { url, token: secret('lantern-9') }, 'Standard', { resolve }), [
      'settings',
      /^url contains (?:\{nonce\} before its path|a user or a password): /,
    ])
    expect(requestCount).toBe(0)
    expect(
      readSettings(http.settings, { url: 'http://x.example:{nonce}/' }, { env: {}, folder: '/' }).problems,
    ).toHaveLength(1)
  })

  test('with a nonce in the path, credentials do not go to another machine over plain http', async () => {
    const resolve = () => Promise.resolve(['192.0.2.7'])
    const settings = { url: 'http://x.example:1/{nonce}', token: secret('lantern-9') }
    await finds(runKind(http, settings, 'Standard', { resolve }), [
      'connect',
      /^credentials are not sent to 192\.0\.2\.7:1 over plain http/,
    ])
  })

  test.each<[string, Settings]>([
    ['json', { json: { '$.q': '{nonce}' } }],
    ['header', { header: { 'X-Echo': '{nonce}' } }],
    ['contains', { contains: '{nonce}' }],
    ['matches', { matches: '{nonce}' }],
    ['xml', { xml: { '/a': '{nonce}' } }],
  ])('%s that expects a nonce which no request sends is refused before any request', async (_, settings) => {
    await using server = await echoing()
    await finds(look(server, '/', settings), [
      'settings',
      /^expects \{nonce\}, but neither url nor headers nor body sends it/,
    ])
    expect(server.requestLines()).toEqual([])
  })
})
