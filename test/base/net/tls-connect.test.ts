import { afterAll, beforeAll, expect, test } from 'vitest'
import { secureContextFor } from '../../../src/core/base/net/secure-context.ts'
import { connectTls } from '../../../src/core/base/net/tls-connect.ts'
import { blackHole, peer } from '../../support/faults/faults.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { suiteWith } from '../../support/suite/peer.ts'

suiteWith(opensslMissing(), 'connectTls', () => {
  let made: Certificates
  beforeAll(() => {
    made = makeCertificates()
  })
  afterAll(() => made.remove())

  const ip = '127.0.0.1'
  async function negotiated(offered: readonly string[], protocol: string | undefined) {
    await using server = await peer(blackHole, { tls: { ...made.good, ALPNProtocols: [...offered] } })
    const at = { ip, port: server.port, address: `${ip}:${server.port}`, signal: new AbortController().signal }
    const options = { host: 'svc.test', ca: made.ca, verify: true, date: () => new Date() }
    const { socket, chain } = await connectTls(
      { ...at, step: () => {} },
      protocol === undefined ? options : { ...options, protocol },
    )
    socket.destroy()
    return { protocol: socket.alpnProtocol, trustError: chain.trustError }
  }

  test('it negotiates the configured protocol, and none without one', async () => {
    expect(await negotiated(['h2', 'http/1.1'], 'h2')).toEqual({ protocol: 'h2', trustError: undefined })
    expect(await negotiated(['h2', 'http/1.1'], undefined)).toEqual({ protocol: false, trustError: undefined })
  })

  test('a server without that protocol refuses the handshake', async () => {
    await expect(negotiated(['http/1.1'], 'h2')).rejects.toMatchObject({
      fault: 'tls',
      details: ['ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL'],
    })
  })

  test('each connection makes a full handshake, and another caFile decides at once', async () => {
    // With this version, a session that could be resumed arrives within the handshake.
    await using server = await peer(blackHole, { tls: { ...made.good, maxVersion: 'TLSv1.2' } })
    const at = { ip, port: server.port, address: `${ip}:${server.port}`, signal: new AbortController().signal }
    const connected = async (ca: string) => {
      const options = { host: 'svc.test', ca, verify: true, date: () => new Date() }
      const { socket, chain } = await connectTls({ ...at, step: () => {} }, options)
      const isReused = socket.isSessionReused()
      socket.destroy()
      return { isTrusted: chain.trustError === undefined, isReused }
    }
    const own = made.selfSigned.cert
    expect([
      await connected(made.ca),
      await connected(made.ca),
      await connected(own),
      await connected(made.ca),
    ]).toEqual([true, true, false, true].map((isTrusted) => ({ isTrusted, isReused: false })))
  })

  test('a context is kept for the same contents, and given up after 16 others', () => {
    const { ca } = made
    const first = secureContextFor({ ca })
    const others = [{}, { ca: [ca, ca] }, { ca, ...made.good }, { ca, ...made.twoDays }, { ca, ciphers: 'HIGH' }]
    expect(new Set([first, ...others.map(secureContextFor)]).size).toBe(6)
    expect(secureContextFor({ ca: [ca] })).toBe(first)
    for (let copies = 3; copies < 19; copies += 1) secureContextFor({ ca: Array.from({ length: copies }, () => ca) })
    expect(secureContextFor({ ca })).not.toBe(first)
  })
})
