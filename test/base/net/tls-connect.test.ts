import { afterAll, beforeAll, expect, test } from 'vitest'
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
})
