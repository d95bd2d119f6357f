import { spawn } from 'node:child_process'
import { request } from 'node:https'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Certificates, makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { ask, openSite, question, withSite } from './site.ts'

/** The cipher that a client of OpenSSL agrees on with the server at a port, or undefined without one. */
async function cipher(port: number, ...options: readonly string[]): Promise<string | undefined> {
  const client = spawn('openssl', ['s_client', '-connect', `127.0.0.1:${port}`, ...options], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  client.stdin.end()
  const output = await text(client.stdout)
  const cipher = /^\s*New, TLSv1\.[23], Cipher is (\S+)$/m.exec(output)?.[1]
  return cipher === '(NONE)' ? undefined : cipher
}

function header(port: number, ca: string, path = '/livez'): Promise<unknown> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, ca, servername: 'localhost', agent: false }, (answer) => {
      answer.resume()
      resolve(answer.headers['strict-transport-security'])
    })
      .on('error', reject)
      .end()
  })
}

suiteWith(opensslMissing(), 'TLS of svc serve', () => {
  let certificates: Certificates
  beforeAll(() => {
    certificates = makeCertificates()
  })
  afterAll(() => certificates?.remove())

  test('S2 TLS 1.2 agrees on ciphers with AEAD only', async () => {
    await withSite({ tls: certificates.good }, async ({ port }) => {
      const offers = [
        'ECDHE-RSA-AES128-SHA',
        'ECDHE-RSA-AES256-SHA',
        'ECDHE-RSA-AES128-SHA256',
        'ECDHE-RSA-AES256-SHA384',
        'ECDHE-ECDSA-AES128-SHA',
        'ECDHE-ECDSA-AES256-SHA',
        'ECDHE-ECDSA-AES128-SHA256',
        'ECDHE-ECDSA-AES256-SHA384',
        'ECDHE-ECDSA-AES128-CCM8',
        'AES128-SHA',
        'AES256-SHA256',
        'AES128-GCM-SHA256',
      ]
      for (const offer of offers) {
        const lenient = `${offer}:@SECLEVEL=0`
        expect([offer, await cipher(port, '-tls1_2', '-cipher', lenient)]).toEqual([offer, undefined])
      }
      const agreed = await cipher(port, '-tls1_2', '-cipher', 'ALL:COMPLEMENTOFALL:@SECLEVEL=0')
      expect(agreed).toMatch(/^ECDHE-(?:RSA|ECDSA)-(?:AES(?:128|256)-GCM-SHA(?:256|384)|CHACHA20-POLY1305)$/)
      const both = ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', 'CHACHA20-POLY1305']
      const kind = agreed?.split('-').slice(0, 2).join('-')
      for (const one of both) {
        expect(await cipher(port, '-tls1_2', '-cipher', `${kind}-${one}`)).toBe(`${kind}-${one}`)
      }
    })
  })

  test('S2 TLS 1.3 is accepted, TLS 1.1 is not', async () => {
    const { port } = await openSite({ tls: certificates.good })
    expect(await cipher(port, '-tls1_3')).toMatch(/^TLS_(?:AES|CHACHA20)/)
    expect(await cipher(port, '-tls1_1', '-cipher', 'ALL:@SECLEVEL=0')).toBeUndefined()
  })

  test('S6 over TLS every answer has Strict-Transport-Security, for this host name only', async () => {
    const { port } = await openSite({ tls: certificates.good })
    for (const path of ['/livez', question, '/nothing']) {
      expect([path, await header(port, certificates.ca, path)]).toEqual([path, 'max-age=31536000'])
    }
  })

  test('S6 where the configuration turns it off, answers end what browsers remember', async () => {
    const { port } = await openSite({ tls: certificates.good, options: { hsts: false } })
    expect(await header(port, certificates.ca)).toBe('max-age=0')
  })

  test('S6 a self-signed certificate gets no Strict-Transport-Security, and neither does plain http', async () => {
    await withSite({ tls: certificates.selfSigned }, async ({ port }) => {
      expect(await header(port, certificates.selfSigned.cert)).toBeUndefined()
    })
    const { port } = await openSite({})
    const relayed = { headers: { 'x-forwarded-proto': 'https' } }
    expect((await ask(port, '/livez', relayed)).headers['strict-transport-security']).toBeUndefined()
  })
})
