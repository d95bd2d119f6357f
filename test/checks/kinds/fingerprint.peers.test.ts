import { X509Certificate } from 'node:crypto'
import { chmodSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import ftp from '../../../src/core/checks/kinds/ftp/index.ts'
import grpc from '../../../src/core/checks/kinds/grpc/index.ts'
import http from '../../../src/core/checks/kinds/http/index.ts'
import httpSteps from '../../../src/core/checks/kinds/http-steps/index.ts'
import ldap from '../../../src/core/checks/kinds/ldap/index.ts'
import oidc from '../../../src/core/checks/kinds/oidc/index.ts'
import rabbitmq from '../../../src/core/checks/kinds/rabbitmq/index.ts'
import redis from '../../../src/core/checks/kinds/redis/index.ts'
import smtp from '../../../src/core/checks/kinds/smtp/index.ts'
import svc from '../../../src/core/checks/kinds/svc.ts'
import tls from '../../../src/core/checks/kinds/tls.ts'
import { expectResult, findsOnly } from '../../support/engine/finds.ts'
import { checked, runKind, secret } from '../../support/engine/run-kind.ts'
import { http as answer, peer, replies } from '../../support/faults/faults.ts'
import { startOidc } from '../../support/openid/oidc.ts'
import { apacheMissing, startApache } from '../../support/servers/apache.ts'
import {
  type Certificates,
  makeCertificates,
  opensslMissing,
  type ServerCertificate,
} from '../../support/servers/certs.ts'
import { healthServer } from '../../support/servers/grpc.ts'
import { nginxMissing, startNginx } from '../../support/servers/nginx.ts'
import { redisMissing, startRedis } from '../../support/servers/redis.ts'
import { admin, slapdMissing, startSlapd } from '../../support/servers/slapd.ts'
import { smtpAccount, startSmtp } from '../../support/servers/smtp.ts'
import { startVsftpd, vsftpdMissing, vsftpdPassword } from '../../support/servers/vsftpd.ts'
import { peerSuite } from '../../support/suite/peer.ts'

type Trust = { readonly fingerprint?: readonly string[]; readonly caFile?: string; readonly servername?: string }
type Server = { readonly run: (trust: Trust) => Promise<readonly Result[]>; readonly stop: () => Promise<void> }
/** A server with a certificate, and the monitor of it, which signs in where its kind can. */
type Start = (certificate: ServerCertificate, made: Certificates) => Promise<Server>

const host = '127.0.0.1'
const mode = 'Advanced'

const servers: Readonly<Record<string, Start>> = {
  'http (nginx)': async (certificate) => {
    const { tlsPort, remove } = await startNginx(certificate)
    const url = `https://${host}:${tlsPort}/`
    return { run: (trust) => runKind(http, { url, ...trust }, mode), stop: remove }
  },
  'http (Apache httpd)': async (certificate) => {
    const { tlsPort, remove } = await startApache(certificate)
    const url = `https://${host}:${tlsPort}/`
    return { run: (trust) => runKind(http, { url, ...trust }, mode), stop: remove }
  },
  'http-steps (nginx)': async (certificate) => {
    const { tlsPort, remove } = await startNginx(certificate)
    const url = `https://${host}:${tlsPort}/`
    const steps = [{ name: 'page', method: 'GET', path: '/', signIn: false }] as const
    return { run: (trust) => runKind(httpSteps, { url, steps, ...trust } as never, mode), stop: remove }
  },
  'svc (simulated)': async (certificate) => {
    const there = await peer(replies(answer(200, '{"Status":"Success","MonitorSummaries":[]}')), { tls: certificate })
    const url = `https://${host}:${there.port}/healthcheck`
    return {
      run: (trust) => runKind(svc, { url, ...trust }, mode),
      stop: async () => await there[Symbol.asyncDispose](),
    }
  },
  'tls (nginx)': async (certificate) => {
    const { tlsPort: port, remove } = await startNginx(certificate)
    return { run: (trust) => runKind(tls, { host, port, ...trust }, mode), stop: remove }
  },
  'grpc (grpc-js)': async (certificate) => {
    const server = await healthServer({ '': 'SERVING' }, certificate)
    const { port } = server
    return {
      run: (trust) => runKind(grpc, { host, port, tls: true, ...trust }, mode),
      stop: async () => await server[Symbol.asyncDispose](),
    }
  },
  'oidc (oidc-provider)': async (certificate) => {
    const { issuer, close } = await startOidc({ tls: certificate })
    return { run: (trust) => runKind(oidc, { issuer, ...trust }, mode), stop: close }
  },
  redis: async (certificate, { caFile }) => {
    const { url, remove } = await startRedis({ tls: { ...certificate, caFile } })
    return { run: (trust) => runKind(redis, { url, ...trust }, mode), stop: remove }
  },
  'ldap (OpenLDAP), ldaps': async (certificate) => {
    const { ldaps: url, remove } = await startSlapd({ tls: certificate })
    const account = { username: admin.user, password: secret(admin.password) }
    return { run: (trust) => runKind(ldap, { url, ...account, ...trust }, mode), stop: remove }
  },
  'ldap (OpenLDAP), StartTLS': async (certificate) => {
    const { url, remove } = await startSlapd({ tls: certificate })
    const account = { username: admin.user, password: secret(admin.password), startTls: true }
    return { run: (trust) => runKind(ldap, { url, ...account, ...trust }, mode), stop: remove }
  },
  'ftp (vsftpd)': async (certificate) => {
    const { port, remove } = await startVsftpd({ certificate })
    const account = { username: 'ftp', password: secret(vsftpdPassword) }
    return { run: (trust) => runKind(ftp, { host, port, ...account, ...trust }, mode), stop: remove }
  },
  'smtp (smtp-server)': async (certificate) => {
    const { port, ...server } = await startSmtp({ key: certificate.key, cert: certificate.cert })
    const account = { username: smtpAccount.username, password: secret(smtpAccount.password) }
    return {
      run: (trust) => runKind(smtp, { host, port, ...account, ...trust }, mode),
      stop: async () => await server[Symbol.asyncDispose](),
    }
  },
}

const missing = nginxMissing ?? apacheMissing ?? redisMissing ?? slapdMissing ?? vsftpdMissing ?? opensslMissing()

peerSuite(missing, 'a pinned certificate', () => {
  let made: Certificates
  beforeAll(() => {
    made = makeCertificates()
    // redis-server, which runs as another account, reads the CA.
    chmodSync(dirname(made.caFile), 0o755)
  })
  afterAll(() => made?.remove())

  const pinOf = ({ cert }: ServerCertificate): string => new X509Certificate(cert).fingerprint256
  const other = '00'.repeat(32)

  test.each(Object.entries(servers))('%s accepts it, refuses any other and reports what decided', async (_, start) => {
    for (const name of ['selfSigned', 'expired', 'otherHost'] as const) {
      const certificate = made[name]
      const server = await start(certificate, made)
      try {
        const pin = pinOf(certificate)
        const bare = pin.replaceAll(':', '').toLowerCase()
        for (const fingerprint of [[pin], [other, bare]]) {
          const results = await server.run({ fingerprint })
          expect(results.filter(({ status }) => status === 'failed')).toEqual([])
          expect(results.map(({ message }) => message).join('\n')).toContain(
            'certificate matches the pinned fingerprint',
          )
          const expired = results.filter(({ message }) => message.includes('expired on'))
          if (name === 'expired') {
            expect(expired).not.toEqual([])
            expect(expired.every(({ status }) => status === 'warning')).toBe(true)
          } else expect(expired).toEqual([])
        }
        const refused = await server.run({ fingerprint: [other], caFile: made.caFile, servername: 'svc.test' })
        const failed = refused.filter(({ status }) => status === 'failed')
        expect(failed.every(({ fault }) => fault === 'tls')).toBe(true)
        const words = `does not match the pinned fingerprint; its fingerprint is ${pin}`
        expect(failed.filter(({ message }) => message.includes(words))).toHaveLength(1)
        const untrusted = await server.run({})
        expect(untrusted.filter(({ status }) => status === 'failed')[0]).toMatchObject({ fault: 'tls' })
      } finally {
        await server.stop()
      }
    }
  })

  test('rabbitmq (simulated) sends nothing to a server with another certificate', async () => {
    const unauthorized = replies(answer(401, '{"error":"not_authorized","reason":"x"}'))
    await using there = await peer(unauthorized, { tls: made.selfSigned })
    const account = { url: `https://${host}:${there.port}`, username: 'monitor', password: secret('the-secret') }
    await findsOnly(runKind(rabbitmq, { ...account, fingerprint: [pinOf(made.selfSigned)] }, 'Basic'), 'management ok')
    const before = there.input()
    await findsOnly(runKind(rabbitmq, { ...account, fingerprint: [other] }, 'Standard'), 'management failed (tls)')
    expect(there.input()).toBe(before)
  })

  test('without a pin, the result says which CAs and which name decided', async () => {
    const server = await servers['http (nginx)']?.(made.good, made)
    onTestFinished(() => server?.stop())

    const results = await server?.run({ caFile: made.caFile, servername: 'svc.test' })
    expectResult(checked(results ?? [], 'certificate'), 'ok', {
      details: [
        'the certificate is for svc.test and trusted by caFile',
        expect.stringContaining('issuer certificate "Svc Test Issuer" expires on'),
      ],
    })
  })

  test('a certificate that names the server in its subject only lacks a subjectAltName', async () => {
    const server = await servers['tls (nginx)']?.(made.commonNameOnly, made)
    onTestFinished(() => server?.stop())

    const results = await server?.run({ caFile: made.caFile, servername: 'svc.test' })
    const result = checked(results ?? [], 'host name')
    expect(result).toMatchObject({ status: 'failed', fault: 'tls' })
    expect(result.message).toMatch(
      /: the certificate has no subjectAltName, and clients do not read the name "svc.test" in its subject: issue it again with one for svc.test$/,
    )
  })
})
