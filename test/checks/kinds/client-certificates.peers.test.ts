import { chmodSync, chownSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import ftp from '../../../src/core/checks/kinds/ftp/index.ts'
import http from '../../../src/core/checks/kinds/http/index.ts'
import ldap from '../../../src/core/checks/kinds/ldap/index.ts'
import mysql from '../../../src/core/checks/kinds/mysql/index.ts'
import postgres from '../../../src/core/checks/kinds/postgres/index.ts'
import redis from '../../../src/core/checks/kinds/redis/index.ts'
import smtp from '../../../src/core/checks/kinds/smtp/index.ts'
import tls from '../../../src/core/checks/kinds/tls.ts'
import { runKind, secret } from '../../support/engine/run-kind.ts'
import { type Certificates, makeCertificates, opensslMissing } from '../../support/servers/certs.ts'
import { eximMissing, startExim } from '../../support/servers/exim.ts'
import { mariadbMissing, startMariadb } from '../../support/servers/mariadb.ts'
import { nginxMissing, startNginx } from '../../support/servers/nginx.ts'
import { startOpenssl } from '../../support/servers/openssl-server.ts'
import { postgresMissing, startPostgres, tlsSettings } from '../../support/servers/postgres.ts'
import { redisMissing, startRedis } from '../../support/servers/redis.ts'
import { asServer, remove, serverFolder } from '../../support/servers/server.ts'
import { admin, slapdMissing, startSlapd } from '../../support/servers/slapd.ts'
import { startVsftpd, vsftpdMissing, vsftpdPassword } from '../../support/servers/vsftpd.ts'
import { peerSuite } from '../../support/suite/peer.ts'

type Trust = { readonly caFile: string; readonly clientCert?: string; readonly clientKey?: string }
type Server = {
  readonly run: (trust: Trust) => Promise<readonly Result[]>
  readonly stop: () => Promise<void>
  /** How the monitor fails without a certificate, where the server does not say that it demands one. */
  readonly without?: RegExp
}

const host = '127.0.0.1'
const account = 'monitor@127.0.0.1'
const word = 'correct horse'
const mode = 'Standard'
const verify = { mode: 'verify', servername: 'svc.test' } as const

/** Real servers that demand a certificate of our CA. */
const servers: Readonly<Record<string, (made: Certificates) => Promise<Server>>> = {
  'http (nginx)': async ({ good, caFile }) => {
    const { tlsPort, remove: stop } = await startNginx({ ...good, clientCa: caFile })
    return { run: (trust) => runKind(http, { url: `https://${host}:${tlsPort}/`, ...trust }, mode), stop }
  },
  'tls (openssl)': async ({ good, caFile }) => {
    const { port, remove: stop } = await startOpenssl(good, ['-Verify', '2', '-verify_return_error', '-CAfile', caFile])
    const send = 'GET / HTTP/1.0\r\n\r\n'
    return { run: (trust) => runKind(tls, { host, port, send, ...trust }, mode), stop }
  },
  redis: async ({ good, caFile }) => {
    const server = await startRedis({ tls: { ...good, caFile }, settings: ['--tls-auth-clients', 'yes'] })
    return { run: (trust) => runKind(redis, { url: server.url, ...trust }, mode), stop: server.remove }
  },
  'postgres (PostgreSQL, clientcert=verify-full)': async ({ good, caFile }) => {
    const folder = serverFolder('postgres-tls')
    const settings = [...tlsSettings(good, folder), `ssl_ca_file=${caFile}`]
    const server = await startPostgres(settings, `hostssl all "svc.test" all cert clientcert=verify-full\n`)
    await server.query('CREATE ROLE "svc.test" LOGIN')
    const url = `postgres://svc.test@${host}:${server.port}/postgres`
    return {
      run: (trust) => runKind(postgres, { url, tls: { ...verify, ...trust } }, mode),
      stop: async () => {
        await server.remove()
        remove(folder)
      },
      without: /certificate/,
    }
  },
  'mysql (MariaDB, REQUIRE X509)': async ({ good, caFile }) => {
    const folder = serverFolder('mariadb-tls')
    const files = (['key', 'cert'] as const).map((name) => {
      writeFileSync(join(folder, name), good[name], { mode: 0o600 })
      if (asServer.uid !== undefined) chownSync(join(folder, name), asServer.uid, asServer.gid)
      return `--ssl-${name}=${join(folder, name)}`
    })
    const server = await startMariadb([...files, `--ssl-ca=${caFile}`])
    await server.query(`CREATE USER ${account} IDENTIFIED BY '${word}' REQUIRE X509`)
    const settings = { url: server.url('monitor'), password: secret(word) }
    return {
      run: (trust) => runKind(mysql, { ...settings, tls: { ...verify, ...trust } }, mode),
      stop: async () => {
        await server.remove()
        remove(folder)
      },
      // MariaDB says no more than that the sign-in was refused.
      without: /refused the sign-in/,
    }
  },
  'ldap (OpenLDAP)': async ({ good, caFile }) => {
    const global = [`TLSCACertificateFile ${caFile}`, 'TLSVerifyClient demand']
    const { ldaps: url, remove: stop } = await startSlapd({ tls: good, global })
    const signIn = { username: admin.user, password: secret(admin.password) }
    const run: Server['run'] = (trust) => runKind(ldap, { url, ...signIn, ...trust }, mode)
    // It sends no alert.
    return { run, stop, without: /closed the connection before it answered/ }
  },
  'ftp (vsftpd, with data connections)': async ({ good, caFile }) => {
    const settings = { require_cert: 'YES', validate_cert: 'YES', ca_certs_file: caFile }
    const { port, remove: stop } = await startVsftpd({ certificate: good, settings })
    const signIn = { username: 'ftp', password: secret(vsftpdPassword), folder: '/' }
    return { run: (trust) => runKind(ftp, { host, port, ...signIn, ...trust } as never, mode), stop }
  },
  'smtp (Exim)': async ({ good, caFile }) => {
    const demands = [`tls_verify_certificates = ${caFile}`, 'tls_verify_hosts = *']
    const { port, remove: stop } = await startExim(demands, good)
    return { run: (trust) => runKind(smtp, { host, port, servername: 'svc.test', ...trust }, mode), stop }
  },
}

const missing =
  nginxMissing ??
  redisMissing ??
  postgresMissing ??
  mariadbMissing ??
  slapdMissing ??
  vsftpdMissing ??
  eximMissing ??
  opensslMissing()

peerSuite(missing, 'a server that demands a client certificate', () => {
  let made: Certificates
  let folder = ''
  beforeAll(() => {
    made = makeCertificates()
    // The servers run as other accounts and read the CA.
    chmodSync(dirname(made.caFile), 0o755)
    folder = mkdtempSync(join(tmpdir(), 'svc-client-'))
    writeFileSync(join(folder, 'client.pem'), made.forClients.cert)
    writeFileSync(join(folder, 'client.key'), made.forClients.key, { mode: 0o600 })
  })
  afterAll(() => {
    made?.remove()
    remove(folder)
  })

  test.each(Object.entries(servers))('H79 %s is healthy with it, and fails without', async (_, start) => {
    const server = await start(made)
    onTestFinished(server.stop)
    const { caFile } = made
    const files = { clientCert: join(folder, 'client.pem'), clientKey: join(folder, 'client.key') }
    const healthy = await server.run({ caFile, ...files })
    const failed = healthy.filter(({ status }) => status === 'failed')
    expect(failed.map(({ check, message }) => `${check}: ${message}`)).toEqual([])
    expect(healthy.map(({ check }) => check)).toContain('client certificate')
    const words = server.without ?? /requires a client certificate/
    const refused = (await server.run({ caFile })).filter(({ status }) => status === 'failed')
    expect(refused.map(({ message }) => message).join('\n')).toMatch(words)
  })
})
