import { afterAll, beforeAll, expect, test } from 'vitest'
import http from '../../../src/core/checks/kinds/http/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { checked, runKind, secret } from '../../support/engine/run-kind.ts'
import { type Apache, apacheMissing, apachePassword, startApache } from '../../support/servers/apache.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { peerSuite } from '../../support/suite/peer.ts'

type Settings = Parameters<typeof runKind<typeof http.settings>>[1]

peerSuite(apacheMissing ?? opensslMissing(), 'http status of Apache httpd', () => {
  let server: Apache
  let certificates: Certificates

  beforeAll(async () => {
    certificates = makeCertificates()
    server = await startApache(certificates.good)
  })
  afterAll(async () => {
    await server?.remove()
    certificates?.remove()
  })

  const status = async (url: string, mode: ExecutionMode, settings: Settings = {}) => {
    const resolve = () => Promise.resolve(['127.0.0.1'])
    return checked(await runKind(http, { url, ...settings }, mode, { resolve }), 'status')
  }

  test('H17 plain HTTP at a TLS port fails from Standard on with the scheme to use, and passes in Basic', async () => {
    const url = server.urls.plainToTls
    expect(await status(url, 'Basic')).toMatchObject({ status: 'ok' })
    for (const mode of ['Standard', 'Advanced'] as const) {
      const failed = await status(url, mode)
      expect(failed).toMatchObject({ status: 'failed', fault: 'protocol', measurement: { value: 400 } })
      expect(failed.message).toMatch(/ speaks TLS on this port: begin url with https:\/\/, .* \(it answered 400\)$/)
    }
    expect(await status(url, 'Standard', { status: ['400'] })).toMatchObject({ status: 'ok' })
  })

  test.each(['removed', 'otherVirtualHost'] as const)(
    'an answer below 500 that is not a page fails from Standard on and passes in Basic: %s',
    async (fault) => {
      const url = server.urls[fault]
      const code = 404
      expect(await status(url, 'Basic')).toMatchObject({ status: 'ok' })
      for (const mode of ['Standard', 'Advanced'] as const) {
        const failed = await status(url, mode)
        expect(failed).toMatchObject({ status: 'failed', fault: 'data', measurement: { value: code } })
        expect(failed.message).toMatch(new RegExp(` answered ${code} \\(expected 2xx\\)$`))
      }
      expect(await status(url, 'Standard', { status: [String(code)] })).toMatchObject({ status: 'ok' })
    },
  )

  test('H16 a page is ok in every mode, and a redirect in Basic and where status names it', async () => {
    for (const mode of ['Basic', 'Standard', 'Advanced'] as const)
      expect(await status(server.urls.healthy, mode)).toMatchObject({ status: 'ok' })
    expect(await status(server.urls.moved, 'Basic')).toMatchObject({ status: 'ok' })
    for (const mode of ['Standard', 'Advanced'] as const) {
      const moved = await status(server.urls.moved, mode)
      expect(moved).toMatchObject({ status: 'failed', fault: 'data', measurement: { value: 302 } })
      expect(moved.message).toMatch(
        / redirects to \S+\/ \(302\): name it in url, or set redirects: 3, or status: \[302\] if/,
      )
    }
    expect(await status(server.urls.moved, 'Standard', { status: ['302'] })).toMatchObject({ status: 'ok' })
    expect(await status(server.urls.moved, 'Standard', { redirects: 3 })).toMatchObject({ status: 'ok' })
  })

  test('H16 a page that requires a sign-in fails, and the result names the scheme', async () => {
    const expected = await status(server.urls.protected, 'Standard')
    expect(expected).toMatchObject({ status: 'failed', fault: 'auth', measurement: { value: 401 } })
    expect(expected.message).toMatch(/answered 401: it requires a sign-in \(Basic\): set username and password, or/)
    const account = { username: 'monitor', password: secret(apachePassword) }
    expect(await status(server.urls.protected, 'Standard', account)).toMatchObject({ status: 'ok' })
    const refused = await status(server.urls.protected, 'Standard', { ...account, password: secret('wrong-secret') })
    expect(refused).toMatchObject({ status: 'failed', fault: 'auth' })
    // A list says what a healthy answer is.
    expect(await status(server.urls.protected, 'Standard', { status: ['401'] })).toMatchObject({ status: 'ok' })
    expect(await status(server.urls.protected, 'Standard', { status: ['200'] })).toMatchObject({ status: 'failed' })
  })

  test('H16 a page that nobody may read fails, with and without an account', async () => {
    const forbidden = await status(server.urls.forbidden, 'Standard')
    expect(forbidden).toMatchObject({ status: 'failed', fault: 'auth', measurement: { value: 403 } })
    expect(forbidden.message).toMatch(/answered 403: it forbids access without a sign-in, or from this address/)
    const account = { username: 'monitor', password: secret(apachePassword) }
    expect((await status(server.urls.forbidden, 'Standard', account)).message).toMatch(
      /answered 403: the account of this monitor may not read this URL/,
    )
  })
})
