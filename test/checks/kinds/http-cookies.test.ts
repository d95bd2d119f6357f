import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import http from '../../../src/core/checks/kinds/http/index.ts'
import { runKind, secret } from '../../support/engine/run-kind.ts'

type Request = readonly [host: string | undefined, url: string | undefined, cookie: string | undefined]

async function follow(answer: (request: IncomingMessage, response: ServerResponse, port: number) => void, more = {}) {
  const requests: Request[] = []
  const server = createServer((request, response) => {
    const { headers, url } = request
    requests.push([headers.host?.replace(/:.*/, ''), url, headers.cookie])
    answer(request, response, port)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  try {
    const settings = { url: `http://a.test:${port}/`, redirects: 4, insecureHttp: true, ...more }
    const results = await runKind(http, settings, 'Standard', { resolve: () => Promise.resolve(['127.0.0.1']) })
    return { requests, status: results.find(({ check }) => check === 'status') }
  } finally {
    server.close()
  }
}

const redirect = (response: ServerResponse, to: string, ...cookies: readonly string[]): void =>
  void response.writeHead(302, { Location: to, 'Set-Cookie': [...cookies] }).end()

test('H86 a page that redirects to itself until it has its cookie is reached', async () => {
  const { requests, status } = await follow(({ headers }, response) =>
    headers.cookie === undefined ? redirect(response, '/', 'seen=1; Path=/') : void response.end('welcome'),
  )
  expect(status).toMatchObject({ status: 'ok' })
  expect(requests).toEqual([
    ['a.test', '/', undefined],
    ['a.test', '/', 'seen=1'],
  ])
})

test('H86 a redirect that never accepts its cookie is a loop', async () => {
  const { requests, status } = await follow((_, response) => redirect(response, '/', 'seen=1; Path=/'))
  expect(status).toMatchObject({ status: 'failed', fault: 'protocol' })
  expect(status?.message).toContain('redirects in a loop')
  expect(requests).toHaveLength(2)
})

test('H86 each host gets its own cookies only, those of TLS not without it, and none that has ended', async () => {
  const { requests } = await follow(({ url }, response, port) => {
    if (url === '/') redirect(response, `http://b.test:${port}/other`, 'a=1; Path=/', 'tls=1; Secure; Path=/')
    else if (url === '/other') redirect(response, `http://a.test:${port}/back`, 'b=2; Path=/')
    else if (url === '/back') redirect(response, '/end', 'a=; Max-Age=0; Path=/', 'deep=3; Path=/deep')
    else response.end('done')
  })
  expect(requests).toEqual([
    ['a.test', '/', undefined],
    ['b.test', '/other', undefined],
    ['a.test', '/back', 'a=1'],
    ['a.test', '/end', undefined],
  ])
})

test('H86 a token in the header Cookie stays beside the cookies of the way', async () => {
  const { requests } = await follow(
    ({ headers }, response) =>
      headers.cookie === 'session=t0' ? redirect(response, '/', 'seen=1; Path=/') : void response.end('welcome'),
    { token: secret('session=t0'), tokenHeader: 'cookie' },
  )
  expect(requests.map(([, , cookie]) => cookie)).toEqual(['session=t0', 'session=t0; seen=1'])
})
