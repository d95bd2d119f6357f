import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { expiryWarning } from '../../src/cli/serve/own-certificate.ts'
import { main } from '../../src/main.ts'
import { type CapturedIo, capturedIo } from '../support/program/captured-io.ts'
import {
  type Certificates,
  makeCertificates,
  opensslMissing,
  type ServerCertificate,
} from '../support/servers/certs.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { until } from '../support/suite/until.ts'

/** The serial number of the certificate that the server at a port shows to a new connection. */
async function serial(port: number): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, servername: 'localhost', rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { serialNumber } = socket.getPeerCertificate()
  socket.destroy()
  return serialNumber
}

suiteWith(opensslMissing(), 'the certificate of svc serve', () => {
  let certificates: Certificates
  let folder: string
  let serve: CapturedIo
  let ended: Promise<unknown>
  const put = ({ cert, key }: ServerCertificate): void => {
    writeFileSync(join(folder, 'cert.pem'), cert)
    writeFileSync(join(folder, 'key.pem'), key, { mode: 0o600 })
  }
  beforeAll(async () => {
    certificates = makeCertificates()
    folder = mkdtempSync(join(tmpdir(), 'svc-certificate-'))
    writeFileSync(join(folder, 'svc.yaml'), 'serve: {every: off}\n', { mode: 0o600 })
    put(certificates.good)
    serve = capturedIo({ env: { PATH: process.env.PATH ?? '', HOME: folder, SVC_HOME: folder } })
    const pair = ['--tls-cert', join(folder, 'cert.pem'), '--tls-key', join(folder, 'key.pem')]
    const args = ['serve', '--only', 'health', '--port', '0', '--port-file', join(folder, 'port'), ...pair]
    ended = main(serve.io, args)
    await until(() => serve.stderr().includes('listens on'))
  })
  afterAll(async () => {
    serve?.signal('SIGTERM')
    await ended
    certificates?.remove()
    rmSync(folder, { recursive: true, force: true })
  })
  const ends = ({ cert }: ServerCertificate): number => Date.parse(new X509Certificate(cert).validTo)
  const port = (): number => Number(readFileSync(join(folder, 'port'), 'utf8'))

  test('W9 SIGHUP makes new connections get the certificate that is on the disk now', async () => {
    const first = await serial(port())
    put(certificates.fiveDays)
    expect(await serial(port())).toBe(first)
    serve.signal('SIGHUP')
    await until(() => serve.stderr().includes('"reloaded: '))
    const second = await serial(port())
    expect(second).not.toBe(first)
    // The key of another certificate.
    writeFileSync(join(folder, 'key.pem'), certificates.selfSigned.key, { mode: 0o600 })
    serve.signal('SIGHUP')
    await until(() => serve.stderr().includes('not reloaded'))
    expect(await serial(port())).toBe(second)
  })

  test('W9 the line of the start says when the certificate ends, and a warning follows if that is soon', async () => {
    expect(serve.stderr()).toMatch(/listens on.*/)
    expect(serve.stderr()).toContain(`"certificateEnds":"${new Date(ends(certificates.good)).toISOString()}"`)
    // Of `fiveDays`, which the reload before has brought.
    expect(serve.stderr()).toMatch(
      /"warn".*the certificate of this server expires on .* UTC, in [45](\.\d)? d: renew it/,
    )
    const now = new Date()
    const warned = (name: 'good' | 'expired' | 'twoDays' | 'shortLived' | 'shortLivedEnding'): boolean =>
      expiryWarning(certificates[name].cert, now) !== undefined
    const names = ['good', 'expired', 'twoDays', 'shortLived', 'shortLivedEnding'] as const
    expect(names.filter(warned)).toEqual(['expired', 'twoDays', 'shortLivedEnding'])
    expect(expiryWarning(certificates.expired.cert, now)).toContain('has expired on')
    // An intermediate that ends before the first certificate counts.
    expect(expiryWarning(certificates.good.cert + certificates.twoDays.cert, now)).toContain('expires on')
  })
})
