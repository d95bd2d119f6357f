import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { chmodSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterAll } from 'vitest'
import { makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import { type OpensslServer, startOpenssl } from '../support/servers/openssl-server.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { fails, type Row, warns } from './row.ts'

const certificates = opensslMissing() === undefined ? makeCertificates() : undefined
afterAll(() => certificates?.remove())
const fingerprint = (name: 'good' | 'selfSigned'): string | undefined =>
  certificates && new X509Certificate(certificates[name].cert).fingerprint256

const certificateNames = [
  'good',
  'expired',
  'expiredIntermediate',
  'notYetValid',
  'otherHost',
  'commonNameOnly',
  'selfSigned',
  'withoutIntermediate',
  'fiveDays',
  'twoDays',
  'shortLived',
  'shortLivedLate',
  'shortLivedEnding',
  'mustStaple',
  'stapled',
  'forClients',
  'underLeaf',
  'tooDeep',
  'withOldRoot',
  'withEndingRoot',
] as const
type Name = (typeof certificateNames)[number] | 'oldVersion' | 'mutual' | 'demanding' | 'namesOnly'
type Servers = Readonly<Record<Name, OpensslServer>>

const clientCa = ['-CAfile', certificates?.caFile ?? '']
/** The files of a certificate that svc shows. */
function clientFiles(name: 'forClients' | 'fiveDays' | 'expired') {
  const made = certificates?.[name]
  const file = `${certificates?.caFile ?? ''}.${name}`
  // The servers run as another account and read the CA.
  if (certificates) chmodSync(dirname(certificates.caFile), 0o755)
  if (made) writeFileSync(file, `${made.cert}${made.key}`, { mode: 0o600 })
  return { clientCert: file, clientKey: file }
}

const handshake =
  (name: Name, more: object = {}) =>
  (servers: Servers) => ({
    kind: 'tls',
    host: '127.0.0.1',
    port: servers[name].port,
    servername: 'svc.test',
    caFile: certificates?.caFile,
    ...more,
  })
const ask =
  (name: Name) =>
  (servers: Servers): readonly PeerProgram[] => [
    {
      program: 'check_tcp',
      args: ['-H', '127.0.0.1', '-p', String(servers[name].port), '-S', '-D', '20,3', '-t', '4', '--sni=svc.test'],
    },
    {
      program: 'blackbox_exporter',
      module: {
        prober: 'tcp',
        tcp: {
          preferred_ip_protocol: 'ip4',
          tls: true,
          tls_config: { ca_file: certificates?.caFile, server_name: 'svc.test' },
        },
      },
      target: `127.0.0.1:${servers[name].port}`,
    },
  ]

const tlsRows: readonly Row<Servers>[] = [
  { fault: 'healthy', monitor: handshake('good'), expected: { state: 'healthy' }, peers: ask('good') },
  {
    fault: 'healthy with a pinned self-signed certificate',
    monitor: handshake('selfSigned', { caFile: undefined, fingerprint: fingerprint('selfSigned') }),
    expected: { state: 'healthy' },
    peers: ask('selfSigned'),
  },
  {
    fault: 'another certificate than the pinned one',
    monitor: handshake('good', { fingerprint: fingerprint('selfSigned') }),
    expected: fails('trust', 'tls', /fingerprint/),
    peers: ask('good'),
  },
  ...(['withOldRoot', 'withEndingRoot'] as const).map(
    (name): Row<Servers> => ({
      fault: `an old root that the server adds to its chain (${name})`,
      monitor: handshake(name),
      client: {
        asks: (servers) =>
          execFileSync(
            'openssl',
            ['s_client', '-connect', `127.0.0.1:${servers[name].port}`, '-CAfile', certificates?.caFile ?? ''],
            { encoding: 'utf8', input: '', stdio: ['pipe', 'pipe', 'ignore'] },
          ),
        gets: /Verify return code: 0 \(ok\)/,
      },
      expected: { state: 'healthy' },
      shallower: { Basic: { state: 'healthy' }, Standard: { state: 'healthy' } },
      before: 'failed, "renew the certificate"',
      peers: ask(name),
    }),
  ),
  {
    fault: 'an expired certificate',
    monitor: handshake('expired'),
    expected: fails('expiry', 'tls', /expired on .* 2 d ago/, { never: /not trusted/ }),
    peers: ask('expired'),
  },
  {
    fault: 'an expired intermediate certificate',
    monitor: handshake('expiredIntermediate'),
    expected: fails('expiry', 'tls', /issuer certificate "Svc Old Issuer" expired/),
    peers: ask('expiredIntermediate'),
  },
  {
    fault: 'a certificate that is not valid yet',
    monitor: handshake('notYetValid'),
    expected: fails('expiry', 'tls', /not valid before/),
    peers: ask('notYetValid'),
  },
  {
    fault: 'a certificate for another name',
    monitor: handshake('otherHost'),
    expected: fails('host name', 'tls', /elsewhere\.test/),
    peers: ask('otherHost'),
  },
  {
    fault: 'a certificate with a common name only',
    monitor: handshake('commonNameOnly'),
    expected: fails('host name', 'tls', /common name|subject/i),
    peers: ask('commonNameOnly'),
  },
  {
    fault: 'a self-signed certificate',
    monitor: handshake('selfSigned'),
    expected: fails('trust', 'tls', /self-signed/),
    peers: ask('selfSigned'),
  },
  {
    fault: 'the intermediate certificate is missing',
    monitor: handshake('withoutIntermediate'),
    expected: fails('trust', 'tls', /not sent by the server/),
    peers: ask('withoutIntermediate'),
  },
  {
    fault: 'the certificate ends in 5 days',
    monitor: handshake('fiveDays'),
    expected: warns('expiry', /in [45](?:\.\d)? d/),
    peers: ask('fiveDays'),
  },
  {
    fault: 'the certificate ends in 2 days',
    monitor: handshake('twoDays'),
    expected: fails('expiry', 'threshold', /in [12](?:\.\d)? d/),
    peers: ask('twoDays'),
  },
  {
    fault: 'healthy with a certificate for 6 days, of which 3 are left',
    monitor: handshake('shortLived'),
    expected: { state: 'healthy' },
    before: 'warning',
    peers: ask('shortLived'),
  },
  {
    fault: 'a certificate for 6 days was not renewed, and ends in one',
    monitor: handshake('shortLivedLate'),
    expected: warns('expiry', /in (?:1 d|23(?:\.\d)? h|24 h) \(warn below 1\.2 d, fail below 7\.2 h\)/),
    peers: ask('shortLivedLate'),
  },
  {
    fault: 'a certificate for 6 days ends in 5 h',
    monitor: handshake('shortLivedEnding'),
    expected: fails('expiry', 'threshold', /in 4\.[78] h \(/),
    peers: ask('shortLivedEnding'),
  },
  {
    fault: 'healthy with a limit of svc.yaml for a certificate of 6 days',
    monitor: handshake('shortLivedEnding', { expiry: { warn: 0.1, limit: 0.05 } }),
    expected: { state: 'healthy' },
    peers: ask('shortLivedEnding'),
  },
  {
    fault: 'a certificate requires a staple, and the server sends none',
    monitor: handshake('mustStaple'),
    expected: warns('staple', /requires OCSP stapling.*sends none/),
    before: 'ok',
    peers: ask('mustStaple'),
  },
  {
    fault: 'healthy with the staple that the certificate requires',
    monitor: handshake('stapled'),
    expected: { state: 'healthy' },
    peers: ask('stapled'),
  },
  {
    fault: 'a certificate for clients',
    monitor: handshake('forClients'),
    expected: fails('trust', 'tls', /not issued for servers/),
    peers: ask('forClients'),
  },
  {
    fault: 'a certificate signed by one that is not a CA',
    monitor: handshake('underLeaf'),
    expected: fails('trust', 'tls', /is not a CA/),
    peers: ask('underLeaf'),
  },
  {
    fault: 'more intermediates than the CA allows',
    monitor: handshake('tooDeep'),
    expected: fails('trust', 'tls', /more issuers below it than it allows/),
    peers: ask('tooDeep'),
  },
  {
    fault: 'healthy where a certificate of the client is demanded',
    monitor: handshake('mutual'),
    expected: { state: 'healthy' },
    peers: ask('mutual'),
  },
  {
    fault: 'healthy where a certificate of the client is demanded, and shown',
    monitor: handshake('demanding', clientFiles('forClients')),
    expected: { state: 'healthy' },
    peers: ask('demanding'),
  },
  {
    fault: 'a certificate of the client that nobody renews',
    monitor: handshake('demanding', clientFiles('fiveDays')),
    expected: warns('client certificate', /certificate "svc.test" of svc expires on .* in 5\.4 d/),
    peers: ask('demanding'),
  },
  {
    fault: 'an expired certificate of the client',
    monitor: handshake('mutual', clientFiles('expired')),
    expected: fails('client certificate', 'tls', /certificate "svc.test" of svc expired on .* 2 d ago: renew it/),
    peers: ask('mutual'),
  },
  {
    fault: 'the server refuses the name',
    monitor: handshake('namesOnly'),
    expected: fails('handshake', 'tls', /no certificate for this name: set servername/),
    peers: ask('namesOnly'),
  },
  {
    fault: 'TLS 1.1 at most',
    monitor: handshake('oldVersion'),
    expected: fails('protocol', 'tls', /TLSv1\.1/),
    peers: ask('oldVersion'),
  },
  {
    fault: 'the server is frozen',
    monitor: handshake('good', { timeout: '2s' }),
    plant: async ({ good }) => {
      good.freeze()
      return good.thaw
    },
    expected: fails('handshake', 'timeout', /accepted the connection but sent nothing for [\d.]+ m?s/),
    peers: ask('good'),
  },
  {
    fault: 'the server is stopped',
    monitor: handshake('twoDays'),
    plant: async ({ twoDays }) => {
      await twoDays.stop('SIGTERM')
      return undefined
    },
    expected: fails('handshake', 'refused', /refused/),
    peers: ask('twoDays'),
  },
]

/** Accepts a connection, says nothing, and answers what `openssl s_server` answers to one line. */
const tcp =
  (more: object = {}, name: Name = 'good') =>
  (servers: Servers) => ({ kind: 'tcp', host: '127.0.0.1', port: servers[name].port, ...more })
const askTcp =
  (...args: string[]) =>
  ({ good: { port } }: Servers): readonly PeerProgram[] => [
    { program: 'check_tcp', args: ['-H', '127.0.0.1', '-p', String(port), '-t', '3', ...args] },
  ]

const inTls = { tls: true, servername: 'svc.test', caFile: certificates?.caFile }

const tcpRows: readonly Row<Servers>[] = [
  { fault: 'healthy', monitor: tcp(), expected: { state: 'healthy' }, peers: askTcp() },
  {
    fault: 'another answer than expected',
    monitor: tcp({ send: 'PING\r\n', expect: 'PONG' }),
    expected: fails('answer', 'protocol', /expected "PONG"/),
    peers: askTcp('-E', '-s', 'PING\\r\\n', '-e', 'PONG'),
  },
  {
    fault: 'another line than expected in a dialogue over TLS',
    monitor: tcp({
      ...inTls,
      dialogue: [
        { send: 'GET / HTTP/1.0\r\n\r\n', expect: '/^HTTP/' },
        { expect: 'no such line', send: 'x' },
      ],
    }),
    expected: fails('dialogue', 'protocol', /expected "no such line" \(step 2 of 2\)/),
    peers: askTcp('-S', '-E', '-s', 'GET / HTTP/1.0\\r\\n\\r\\n', '-e', 'no such line'),
  },
  {
    fault: 'a certificate that nobody renews, behind a dialogue',
    monitor: tcp({ ...inTls, dialogue: [{ send: 'GET / HTTP/1.0\r\n\r\n', expect: '/^HTTP/' }] }, 'fiveDays'),
    expected: warns('certificate', /certificate "svc.test" expires on .* in 5\.4 d/),
    peers: askTcp('-S', '-D', '20,3'),
  },
  {
    fault: 'the server is frozen',
    monitor: tcp({ send: 'PING\r\n', expect: 'PONG', timeout: '2s' }),
    plant: async ({ good }) => {
      good.freeze()
      return good.thaw
    },
    expected: fails('answer', 'timeout', /sent nothing/),
    peers: askTcp('-E', '-s', 'PING\\r\\n', '-e', 'PONG'),
  },
  {
    fault: 'the server is stopped',
    monitor: tcp({}, 'expired'),
    plant: async ({ expired }) => {
      await expired.stop('SIGTERM')
      return undefined
    },
    expected: fails('connect', 'refused', /refused/),
    peers: ({ expired }) => [{ program: 'check_tcp', args: ['-H', '127.0.0.1', '-p', String(expired.port)] }],
  },
]

const version =
  opensslMissing() === undefined
    ? ` ${/\d+\.\d+\.\d+/.exec(execFileSync('openssl', ['version'], { encoding: 'utf8' }))?.[0] ?? ''}`
    : ''

for (const [kind, rows] of [
  ['TLS', tlsRows],
  ['TCP', tcpRows],
] as const) {
  corpus<Servers>({
    server: `openssl s_server${version}, ${kind}`,
    missing: opensslMissing(),
    start: async () => {
      if (!certificates) throw new Error('no certificates')
      const old = ['-tls1_1', '-cipher', 'DEFAULT@SECLEVEL=0']
      const started: Partial<Record<Name, OpensslServer>> = {
        oldVersion: await startOpenssl(certificates.good, old),
        mutual: await startOpenssl(certificates.good, ['-Verify', '3']),
        demanding: await startOpenssl(certificates.good, ['-Verify', '3', '-verify_return_error', ...clientCa]),
        namesOnly: await startOpenssl(certificates.good, ['for:elsewhere.test']),
      }
      for (const name of certificateNames) started[name] = await startOpenssl(certificates[name])
      return started as Servers
    },
    stop: async (servers) => {
      servers.good.thaw()
      for (const server of Object.values(servers)) await server.remove()
    },
    rows,
  })
}
