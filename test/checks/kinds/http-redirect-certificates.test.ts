import { once } from 'node:events'
import { createServer as createHttp, type RequestListener, type Server } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, expect, test } from 'vitest'
import http from '../../../src/core/checks/kinds/http/index.ts'
import { runKind } from '../../support/engine/run-kind.ts'
import { makeCertificates } from '../../support/servers/certs.ts'

const certificates = makeCertificates()
afterAll(() => certificates.remove())

const well: RequestListener = (_, response) => void response.end('well')
const to =
  (origin: string): RequestListener =>
  (_, response) =>
    void response.writeHead(301, { Location: `${origin}/`, Connection: 'close' }).end()

/** Starts it on a free port, and ends it with the test. */
async function serving(server: Server, scheme: 'http' | 'https') {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    origin: `${scheme}://127.0.0.1:${port}`,
    address: `127.0.0.1:${port}`,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}
const secure = (name: 'good' | 'twoDays', listener: RequestListener) =>
  serving(createServer({ key: certificates[name].key, cert: certificates[name].cert }, listener), 'https')

const certificatesOf = async (url: string) => {
  const settings = { url: `${url}/`, redirects: 2, caFile: certificates.caFile }
  const results = await runKind(http, settings, 'Advanced')
  return results.filter(({ check }) => check === 'certificate').map(({ address, status }) => [address, status])
}

test('H53 the certificate behind a redirect from https counts as that of the first server', async () => {
  await using target = await secure('twoDays', well)
  await using first = await secure('good', to(target.origin))
  expect(await certificatesOf(first.origin)).toEqual([
    [first.address, 'ok'],
    [target.address, 'failed'],
  ])
})

test('H53 the certificate behind a redirect from http counts, although the first server has none', async () => {
  await using target = await secure('twoDays', well)
  await using middle = await secure('good', to(target.origin))
  await using first = await serving(createHttp(to(middle.origin)), 'http')
  expect(await certificatesOf(first.origin)).toEqual([
    [middle.address, 'ok'],
    [target.address, 'failed'],
  ])
})
