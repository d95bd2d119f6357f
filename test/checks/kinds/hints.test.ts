import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createSecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import http from '../../../src/core/checks/kinds/http/index.ts'
import { grantee, mysqlFault } from '../../../src/core/checks/kinds/mysql/errors.ts'
import smtp from '../../../src/core/checks/kinds/smtp/index.ts'
import tls from '../../../src/core/checks/kinds/tls.ts'
import { checked, runKind } from '../../support/engine/run-kind.ts'
import { http as answer, type Behaviour, blackHole, peer, replies } from '../../support/faults/faults.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { suiteWith } from '../../support/suite/peer.ts'

const host = '127.0.0.1'
const status = (results: readonly Result[]): string => checked(results, 'status').message

/** The message about a server that answers a plain request in this way. */
const plain = async (behave: Behaviour, redirects = 0) => {
  await using server = await peer(behave)
  return status(await runKind(http, { url: `http://${host}:${server.port}/`, redirects }, 'Standard'))
}
const both = (...heads: readonly string[]) => replies(`HTTP/1.1 200 OK\r\n${heads.join('\r\n')}\r\n\r\n0\r\n\r\n`)
const [length, chunked] = ['Content-Length: 2', 'Transfer-Encoding: chunked']

test.each([
  [[length, chunked], 'sent Transfer-Encoding beside Content-Length'],
  [[chunked, length], 'sent Transfer-Encoding beside Content-Length'],
  [[length, 'Content-Length: 3'], 'sent Content-Length twice'],
  [['Content-Length: 2x'], 'sent a Content-Length that is not one number'],
])('H59 an answer with %j %s', async (heads, says) => {
  expect(await plain(both(...heads))).toContain(says)
})

test('H59 a redirect that leads back is a loop, also if it sets a cookie again and again', async () => {
  const back = (headers: object) => replies(answer(302, '', { Location: '/', ...headers }))
  for (const headers of [{ 'Set-Cookie': 'seen=1' }, {}]) {
    expect(await plain(back(headers), 3)).toContain('redirects in a loop')
  }
})

test('H59 a PostgreSQL or Redis server at the port of a web monitor is named with its kind', async () => {
  // It takes a request for a start-up packet of a wrong length, and only closes the connection.
  const postgres: Behaviour = (socket) =>
    void socket.once('data', (data) => {
      if (data.equals(Buffer.from('0000000804d2162f', 'hex'))) socket.write('N')
      else socket.end()
    })
  expect(await plain(postgres)).toMatch(/speaks the protocol of PostgreSQL: use kind: postgres$/)
  expect(await plain((socket) => void socket.once('data', () => socket.end()))).toMatch(/before it answered$/)
  // Redis closes a connection at the header Host, because a web page may have caused the request.
  const redis: Behaviour = (socket) =>
    void socket.once('data', (data) => {
      if (data.toString() === 'PING\r\n') socket.write('-NOAUTH Authentication required.\r\n')
      else socket.end()
    })
  expect(await plain(redis)).toMatch(/speaks the protocol of Redis: use kind: redis$/)
})

test.each([
  ['450 Insufficient disk space', /the server has no room or no resources for mail/],
  ['450 4.7.1 Greylisted, come back', /greylisting/],
])('H59 the answer %j to a recipient is called what it is', async (refusal, says) => {
  await using server = await peer((socket) => {
    socket.write('220 mail.svc.test ready\r\n')
    socket.on('data', (line) => {
      socket.write(String(line).startsWith('RCPT') ? `${refusal}\r\n` : '250 mail.svc.test\r\n')
    })
  })
  const settings = { host, port: server.port, tls: 'off' as const, recipient: 'a@svc.test' }
  expect(checked(await runKind(smtp, settings, 'Advanced'), 'recipient').message).toMatch(says)
})

test('H59 the GRANT for MySQL and MariaDB names the account that is signed in', () => {
  const error = {
    errno: 1227,
    sqlState: '42000',
    message: 'Access denied; you need (at least one of) the PROCESS privilege(s)',
  }
  const target = { user: 'monitor', database: '' }
  const place = { target, address: 'db:3306', phase: 'check' } as unknown as Parameters<typeof mysqlFault>[1]
  const says = (account?: string) => (mysqlFault(error, { ...place, account }) as Error).message
  expect(says(grantee('monitor@localhost'))).toContain("GRANT PROCESS ON *.* TO 'monitor'@'localhost'")
  expect(says()).toContain("GRANT PROCESS ON *.* TO 'monitor'")
  expect(['a@b@%', "o'hara@10.%", ''].map(grantee)).toEqual(["'a@b'@'%'", "'o''hara'@'10.%'", undefined])
})

suiteWith(opensslMissing(), 'hints about TLS', () => {
  let made: Certificates
  let folder: string
  beforeAll(() => {
    made = makeCertificates()
    folder = mkdtempSync(join(tmpdir(), 'svc-hints-'))
  })
  afterAll(() => {
    made.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  /** A certificate that a server makes for itself, with a key that may sign nothing else. */
  const own = (name: string, bits: number) => {
    const [key, cert, config] = ['key', 'pem', 'cnf'].map((ending) => join(folder, `${bits}.${ending}`)) as [
      string,
      string,
      string,
    ]
    const uses =
      'basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nsubjectAltName=DNS:abc.traefik.default'
    writeFileSync(config, `[req]\ndistinguished_name=dn\nx509_extensions=own\n[dn]\n[own]\n${uses}\n`)
    const request = ['req', '-x509', '-newkey', `rsa:${bits}`, '-nodes', '-days', '30', '-subj', `/CN=${name}`]
    execFileSync('openssl', [...request, '-config', config, '-keyout', key, '-out', cert], { stdio: 'ignore' })
    return {
      key: readFileSync(key, 'utf8'),
      cert: readFileSync(cert, 'utf8'),
      file: cert,
      minVersion: 'TLSv1' as const,
    }
  }
  const trust = async (certificate: ReturnType<typeof own>, caFile?: string) => {
    await using server = await peer(blackHole, { tls: certificate })
    const settings = { host, port: server.port, servername: 'shop.test', caFile }
    return checked(await runKind(tls, settings, 'Standard'), 'trust').message
  }

  test('H59 the default certificate of Traefik is called self-signed, with its name and its meaning', async () => {
    expect(await trust(own('TRAEFIK DEFAULT CERT', 2_048))).toContain(
      'certificate "TRAEFIK DEFAULT CERT" is self-signed, which Traefik uses where none of its certificates is for this name',
    )
  })

  test('H59 a key that is too short is the reason, whether caFile has the certificate or not', async () => {
    const weak = own('weak.test', 1_024)
    const says = /the key of "weak\.test" has 1024 bits, which is too short to trust: renew it with 2048 or more/
    expect(await trust(weak, weak.file)).toMatch(says)
    expect(await trust(weak)).toMatch(says)
  })

  test('H59 a server of HTTP/2 only says no word about a sign-in', async () => {
    const server = createSecureServer({ key: made.good.key, cert: made.good.cert }).listen(0, host)
    await new Promise((resolve) => server.once('listening', resolve))
    onTestFinished(() => void server.close())

    const url = `https://localhost:${(server.address() as AddressInfo).port}/`
    const message = status(await runKind(http, { url, caFile: made.caFile, addresses: 'any' }, 'Standard'))
    expect(message).toMatch(/speaks HTTP\/2 only, and svc HTTP\/1\.1: allow both at the server/)
    expect(message).not.toContain('username')
  })

  test('H59 plain HTTP at a port whose TLS refuses the handshake names https', async () => {
    await using server = await peer(blackHole, { tls: { ...made.good, minVersion: 'TLSv1', maxVersion: 'TLSv1.1' } })
    const message = status(await runKind(http, { url: `http://${host}:${server.port}/` }, 'Standard'))
    expect(message).toMatch(/speaks TLS on this port: begin url with https:/)
  })
})
