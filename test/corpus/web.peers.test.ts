import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll } from 'vitest'
import { makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import {
  apache,
  haproxy,
  nginx,
  type SpecialPort,
  startWebServer,
  type WebProgram,
  type WebServer,
} from '../support/servers/web-servers.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { fails, notChecked, type Row, warns } from './row.ts'

const certificates = opensslMissing() === undefined ? makeCertificates() : undefined
afterAll(() => certificates?.remove())

const plain =
  (path: string, more: object = {}) =>
  ({ port }: WebServer) => ({ kind: 'http', url: `http://127.0.0.1:${port}${path}`, ...more })
const secure =
  (name: keyof WebServer['tlsPort'], more: object = {}) =>
  ({ tlsPort, caFile }: WebServer) => ({ kind: 'http', url: `https://127.0.0.1:${tlsPort[name]}/`, caFile, ...more })
const askPlain =
  (path: string, ...more: string[]) =>
  ({ port }: WebServer): readonly PeerProgram[] => [
    { program: 'check_http', args: ['-I', '127.0.0.1', '-p', String(port), '-u', path, ...more] },
    {
      program: 'blackbox_exporter',
      module: { prober: 'http', http: { preferred_ip_protocol: 'ip4' } },
      target: `http://127.0.0.1:${port}${path}`,
    },
  ]
const askSecure =
  (name: keyof WebServer['tlsPort']) =>
  ({ tlsPort, caFile }: WebServer): readonly PeerProgram[] => [
    { program: 'check_http', args: ['-S', '-C', '20,3', '-I', '127.0.0.1', '-p', String(tlsPort[name])] },
    {
      program: 'blackbox_exporter',
      module: { prober: 'http', http: { preferred_ip_protocol: 'ip4', tls_config: { ca_file: caFile } } },
      target: `https://127.0.0.1:${tlsPort[name]}/`,
    },
  ]

const fingerprint = (name: 'good' | 'selfSigned'): string | undefined =>
  certificates && new X509Certificate(certificates[name].cert).fingerprint256

const rows: readonly Row<WebServer>[] = [
  {
    fault: 'healthy over HTTP',
    monitor: plain('/', { contains: 'It works' }),
    expected: { state: 'healthy' },
    peers: askPlain('/', '-s', 'It works'),
  },
  {
    fault: 'healthy over HTTPS',
    monitor: secure('good', { contains: 'It works' }),
    expected: { state: 'healthy' },
    peers: askSecure('good'),
  },
  {
    fault: 'the health URL was removed',
    monitor: plain('/gone'),
    expected: fails('status', 'data', / answered 404 \(expected 2xx\)$/),
    before: 'ok',
    peers: askPlain('/gone'),
  },
  {
    fault: 'the application is broken',
    monitor: plain('/broken'),
    expected: fails('status', 'any', /\b503\b/),
    peers: askPlain('/broken'),
  },
  {
    fault: 'a page redirects to itself',
    monitor: plain('/loop', { redirects: 3 }),
    expected: fails('status', 'any', /redirect/i),
    peers: askPlain('/loop'),
  },
  {
    fault: 'the application redirects to a login page',
    monitor: plain('/login-required'),
    expected: fails('status', 'data', /redirects to .*\/login .*redirects: 3/),
    before: 'ok',
    peers: askPlain('/login-required'),
  },
  {
    fault: 'the answer is empty',
    monitor: plain('/empty'),
    expected: warns('empty body', /200 with an empty body/),
    before: 'ok',
    peers: askPlain('/empty'),
  },
  {
    fault: 'a sign-in is required',
    monitor: plain('/private'),
    expected: fails('status', 'auth', /\b401\b.*Basic.*username and password/),
    before: 'ok',
    peers: askPlain('/private'),
  },
  {
    fault: 'access is forbidden',
    monitor: plain('/forbidden'),
    expected: fails('status', 'auth', /\b403\b.*forbids access/),
    before: 'ok',
    peers: askPlain('/forbidden'),
  },
  {
    fault: 'another page than expected',
    monitor: plain('/', { contains: 'Orders' }),
    expected: fails('content', 'data', /Orders/),
    peers: askPlain('/', '-s', 'Orders'),
  },
  {
    fault: 'healthy: what must not be there is not there',
    monitor: plain('/', {
      contains: { not: 'Orders' },
      matches: { not: '/fatal/i' },
      header: { 'X-Debug': { not: 'present' } },
    }),
    expected: { state: 'healthy' },
  },
  {
    fault: 'a text that must not be there',
    monitor: plain('/', { contains: { not: 'It works' } }),
    expected: fails('content', 'data', /the answer contains "It works"/),
    peers: ({ port }) => [
      {
        program: 'blackbox_exporter',
        module: {
          prober: 'http',
          http: { preferred_ip_protocol: 'ip4', fail_if_body_matches_regexp: ['It works'] },
        },
        target: `http://127.0.0.1:${port}/`,
      },
    ],
  },
  {
    fault: 'a header that must not be there',
    monitor: plain('/', { header: { 'Content-Length': { not: 'present' } } }),
    expected: fails('header', 'data', /the answer has the header Content-Length/),
  },
  {
    fault: 'a text that must not be there, and an answer that is empty',
    monitor: plain('/empty', { contains: { not: 'error' } }),
    expected: warns('empty body', /200 with an empty body/),
  },
  {
    fault: 'a text that must not be there, and an answer that is cut',
    monitor: plain('/', { contains: { not: 'Orders' }, maxBody: '8B' }),
    expected: notChecked('content', /only the first 8 B of the answer were read/),
  },
  {
    fault: 'a text that must not be there, and a page that is gone',
    monitor: plain('/gone', { contains: { not: 'Orders' } }),
    expected: fails('status', 'data', / answered 404 /, { never: /Orders/ }),
  },
  {
    fault: 'plain HTTP at a TLS port',
    monitor: ({ tlsPort }) => ({ kind: 'http', url: `http://127.0.0.1:${tlsPort.good}/` }),
    expected: fails('status', 'protocol', /speaks TLS.*https:\/\//),
    before: 'ok',
    peers: ({ tlsPort }) => [{ program: 'check_http', args: ['-I', '127.0.0.1', '-p', String(tlsPort.good)] }],
  },
  {
    fault: 'TLS at a plain port',
    monitor: ({ port, caFile }) => ({ kind: 'http', url: `https://127.0.0.1:${port}/`, caFile }),
    expected: fails('connect', 'tls', /TLS/),
    peers: ({ port }) => [{ program: 'check_http', args: ['-S', '-I', '127.0.0.1', '-p', String(port)] }],
  },
  {
    fault: 'an expired certificate',
    monitor: secure('expired'),
    expected: fails('connect', 'tls', /expired/),
    peers: askSecure('expired'),
  },
  {
    fault: 'a certificate for another name',
    monitor: secure('otherHost'),
    expected: fails('connect', 'tls', /elsewhere\.test/),
    peers: askSecure('otherHost'),
  },
  {
    fault: 'a self-signed certificate',
    monitor: secure('selfSigned'),
    expected: fails('connect', 'tls', /self-signed|not trusted/),
    peers: askSecure('selfSigned'),
  },
  {
    fault: 'healthy with a pinned self-signed certificate',
    monitor: secure('selfSigned', { caFile: undefined, fingerprint: fingerprint('selfSigned') }),
    expected: { state: 'healthy' },
    peers: askSecure('selfSigned'),
  },
  {
    fault: 'another certificate than the pinned one',
    monitor: secure('good', { fingerprint: fingerprint('selfSigned') }),
    expected: fails('connect', 'tls', /fingerprint/, { never: /not trusted/ }),
    peers: askSecure('good'),
  },
  {
    fault: 'the certificate has a common name only',
    monitor: secure('commonNameOnly', { servername: 'svc.test' }),
    expected: fails('connect', 'tls', /common name|subject/i),
    peers: askSecure('commonNameOnly'),
  },
  {
    fault: 'the intermediate certificate is missing',
    monitor: secure('withoutIntermediate'),
    expected: fails('connect', 'tls', /intermediate|chain|issuer/),
    peers: askSecure('withoutIntermediate'),
  },
  {
    fault: 'the certificate ends in 5 days',
    monitor: secure('fiveDays'),
    expected: warns('certificate', /in [45](?:\.\d)? d/),
    peers: askSecure('fiveDays'),
  },
  {
    fault: 'the page redirects to https, whose certificate ends in 2 days',
    monitor: plain('/moved', { redirects: 1, caFile: certificates?.caFile }),
    expected: fails('certificate', 'threshold', /in [12](?:\.\d)? d/),
    shallower: { Basic: { state: 'healthy' }, Standard: { state: 'healthy' } },
    before: 'healthy',
  },
  {
    fault: 'the certificate ends in 2 days',
    monitor: secure('twoDays'),
    expected: fails('certificate', 'threshold', /in [12](?:\.\d)? d/),
    peers: askSecure('twoDays'),
  },
  {
    fault: 'the server is frozen',
    monitor: plain('/', { timeout: '2s' }),
    plant: async (server) => {
      server.freeze()
      return server.thaw
    },
    expected: fails('status', 'timeout', /accepted the connection but sent nothing for [\d.]+ m?s/),
    peers: askPlain('/', '-t', '3'),
  },
  {
    fault: 'the server is stopped',
    monitor: plain('/'),
    plant: async (server) => {
      await server.stop()
      return server.start
    },
    expected: fails('connect', 'refused', /refused/),
    peers: askPlain('/'),
  },
]

const special =
  (name: SpecialPort, scheme: 'http' | 'https', more: object = {}) =>
  ({ specialPort, caFile }: WebServer) => ({
    kind: 'http',
    url: `${scheme}://127.0.0.1:${specialPort[name]}/`,
    ...(scheme === 'https' ? { caFile } : {}),
    ...more,
  })
const askSpecial =
  (name: SpecialPort, ...args: readonly string[]) =>
  ({ specialPort }: WebServer): readonly PeerProgram[] => [
    { program: 'check_http', args: [...args, '-I', '127.0.0.1', '-p', String(specialPort[name])] },
  ]

/** The rows of the ports that not every program offers. */
const specialRows: Readonly<Record<SpecialPort, Row<WebServer>>> = {
  h2: {
    fault: 'HTTP/2 only, without TLS',
    monitor: special('h2', 'http'),
    expected: fails('status', 'protocol', /speaks HTTP\/2 only/),
    peers: askSpecial('h2'),
  },
  h2Tls: {
    fault: 'HTTP/2 only, over TLS',
    monitor: special('h2Tls', 'https'),
    expected: fails('status', 'protocol', /speaks HTTP\/2 only/),
    peers: askSpecial('h2Tls', '-S'),
  },
  mutual: {
    fault: 'a certificate of the client is demanded',
    monitor: special('mutual', 'https'),
    expected: fails('status', 'tls', /requires a client certificate/),
    peers: askSpecial('mutual', '-S'),
  },
  mutualTls12: {
    fault: 'a certificate of the client is demanded, in TLS 1.2',
    monitor: special('mutualTls12', 'https'),
    expected: fails('connect', 'tls', /client certificate/),
    peers: askSpecial('mutualTls12', '-S'),
  },
}
const lengthTwice: Row<WebServer> = {
  fault: 'Content-Length twice',
  monitor: plain('/twice'),
  expected: fails('status', 'protocol', /sent Content-Length twice/),
  peers: askPlain('/twice'),
}
const dateless: Row<WebServer> = {
  fault: 'healthy without a Date header',
  monitor: plain('/dateless', { contains: 'It works' }),
  expected: { state: 'healthy' },
  before: 'the clock was not checked',
  peers: askPlain('/dateless', '-s', 'It works'),
}
const datelessClock: Row<WebServer> = {
  fault: 'no Date header for a clock that svc.yaml limits',
  monitor: plain('/dateless', { clock: '1m' }),
  expected: notChecked('clock', /no Date header/),
  peers: askPlain('/dateless'),
}

/** The version that a program prints, e.g. `1.22.1`. */
function version(program: WebProgram): string {
  if (program.missing !== undefined) return ''
  const text = execFileSync('sh', ['-c', `${program.name} -v 2>&1`], { encoding: 'utf8' })
  return ` ${/(\d+\.\d+\.\d+)/.exec(text)?.[1] ?? ''}`
}

const failedJobs = (limit: number) => ({
  name: 'failed',
  path: '/jobs/job',
  where: { '@state': 'failed' },
  count: { limit },
})
const jobLink = (state: string) => ({ name: 'page', path: `$.jobs[${state === 'done' ? 0 : 1}].id`, url: '/{}' })

const documentRows: readonly Row<WebServer>[] = [
  {
    fault: 'healthy JSON, with its version and its links',
    monitor: plain('/state.json', {
      header: { 'content-length': '/^[0-9]+$/' },
      lastModified: '1h',
      version: { expected: '2.1.0' },
      json: { '$.database': 'ok' },
      links: [jobLink('done')],
    }),
    expected: { state: 'healthy' },
    peers: askPlain('/state.json', '-r', '"database":"ok"'),
  },
  {
    fault: 'a page of state says what it must not say, never met',
    monitor: plain('/state.json', { json: { '$.database': '/^(?!ok$)/' } }),
    expected: fails('json', 'any', /\$\.database/),
    peers: askPlain('/state.json'),
  },
  {
    fault: 'healthy XML',
    monitor: plain('/jobs.xml', { xml: { '/jobs/@version': '2' }, measure: [failedJobs(1)] }),
    expected: { state: 'healthy' },
    peers: askPlain('/jobs.xml'),
  },
  {
    fault: 'a header was removed',
    monitor: plain('/state.json', { header: { 'strict-transport-security': '/max-age/' } }),
    expected: fails('header', 'data', /no header strict-transport-security/),
    peers: askPlain('/state.json', '-d', 'Strict-Transport-Security'),
  },
  {
    fault: 'an old version is running',
    monitor: plain('/state.json', { version: { expected: '2.2.0' } }),
    expected: fails('version', 'data', /2\.1\.0.*2\.2\.0/),
    peers: askPlain('/state.json'),
  },
  {
    fault: 'the application reports a fault in JSON',
    monitor: plain('/state.json', { json: { '$.database': 'primary' } }),
    expected: fails('json', 'data', /database.*ok.*primary/),
    peers: askPlain('/state.json'),
  },
  {
    fault: 'JSON was replaced by a page',
    monitor: plain('/', { json: { '$.database': 'ok' } }),
    expected: fails('json', 'any', /JSON/),
    peers: askPlain('/'),
  },
  {
    fault: 'too many failed jobs in XML',
    monitor: plain('/jobs.xml', { measure: [failedJobs(0)] }),
    expected: fails('measure', 'any', /failed.*\b1\b/),
    peers: askPlain('/jobs.xml'),
  },
  {
    fault: 'another version of XML than expected',
    monitor: plain('/jobs.xml', { xml: { '/jobs/@version': '3' } }),
    expected: fails('xml', 'data', /version.*2.*3/),
    peers: askPlain('/jobs.xml'),
  },
  {
    fault: 'a link leads nowhere',
    monitor: plain('/state.json', { links: [jobLink('failed')] }),
    expected: fails('links', 'any', /missing\.html.*404|404.*missing\.html/),
    peers: askPlain('/state.json'),
  },
  {
    fault: 'the content is no longer renewed',
    monitor: plain('/state.json', { lastModified: '1s' }),
    plant: async () => {
      // The file is older than that.
      await pause(2_500)
      return undefined
    },
    expected: fails('last modified', 'threshold', /content changed .* ago/),
    peers: askPlain('/state.json', '-M', '1s'),
  },
]

const works = { contains: 'It works' }
const packedRows: readonly Row<WebServer>[] = [
  ...['gzip/page', 'br/page', 'zstd/page', 'deflate/page', 'deflate/raw', 'utf-8/page'].map(
    (name): Row<WebServer> => ({
      fault: `healthy in the content coding ${name}`,
      monitor: plain(`/packed/${name}`, works),
      expected: { state: 'healthy' },
      peers: askPlain(`/packed/${name}`, '-s', 'It works'),
    }),
  ),
  {
    fault: 'another page than expected, compressed',
    monitor: plain('/packed/gzip/page', { contains: 'Orders' }),
    expected: fails('content', 'data', /Orders/, { never: /gzip/ }),
    peers: askPlain('/packed/gzip/page', '-s', 'Orders'),
  },
  ...['gzip/cut', 'gzip/plain', 'zstd/cut', 'br/plain'].map(
    (name): Row<WebServer> => ({
      fault: `damaged content coding ${name}`,
      monitor: plain(`/packed/${name}`),
      expected: fails('body', 'protocol', new RegExp(`content coding ${name.split('/')[0]}.*(?:damaged|incomplete)`)),
      before: 'ok',
      peers: askPlain(`/packed/${name}`),
    }),
  ),
  {
    fault: 'a compressed answer without a body',
    monitor: plain('/packed/gzip/empty'),
    expected: warns('empty body', /empty body/),
    peers: askPlain('/packed/gzip/empty'),
  },
  {
    fault: 'a small compressed answer that is larger than maxBody',
    monitor: plain('/packed/gzip/large', works),
    expected: fails('content', 'data', /first 1 MiB of the answer/),
    peers: askPlain('/packed/gzip/large', '-s', 'It works'),
  },
  ...['latin1.html', 'meta.html', 'utf16.html', 'mark.json'].map(
    (name): Row<WebServer> => ({
      fault: `healthy in the encoding of ${name}`,
      monitor: plain(`/text/${name}`, { contains: 'Größe' }),
      expected: { state: 'healthy' },
      peers: askPlain(`/text/${name}`, '-s', 'Größe'),
    }),
  ),
  ...['mark.json', 'latin1.json'].map(
    (name): Row<WebServer> => ({
      fault: `healthy JSON in the encoding of ${name}`,
      monitor: plain(`/text/${name}`, { json: { '$.name': 'Größe' } }),
      expected: { state: 'healthy' },
      peers: askPlain(`/text/${name}`),
    }),
  ),
  {
    fault: 'healthy behind a proxy that relays Age and sets its own Date',
    monitor: plain('/aged.html'),
    expected: { state: 'healthy' },
    before: 'the clock is ahead by 5 min',
    peers: askPlain('/aged.html'),
  },
  {
    fault: 'the content comes from a cache',
    monitor: plain('/aged.html', works),
    expected: warns('cache', /answered from a cache.*5(?:\.\d)? min.*warn 1 min/),
    before: 'ok',
    peers: askPlain('/aged.html', '-s', 'It works'),
  },
  {
    fault: 'healthy content from a cache that is accepted',
    monitor: plain('/aged.html', { ...works, maxAge: '10m' }),
    expected: { state: 'healthy' },
    peers: askPlain('/aged.html', '-s', 'It works'),
  },
]

for (const [title, program] of [
  ['nginx', nginx],
  ['Apache', apache],
] as const) {
  corpus<WebServer>({
    server: `${title}${version(program)}, documents`,
    missing: program.missing ?? opensslMissing(),
    start: async () => {
      if (!certificates) throw new Error('no certificates')
      return await startWebServer(program, certificates)
    },
    rows: [...documentRows, ...packedRows],
  })
}

/** nginx answers in HTTP that a client certificate is missing, in either version of TLS. */
const inHttp: Row<WebServer>['expected'] = fails('status', 'tls', /requires a client certificate/)

for (const [title, program, more] of [
  ['nginx', nginx, [lengthTwice, specialRows.h2, specialRows.mutual, { ...specialRows.mutualTls12, expected: inHttp }]],
  ['Apache', apache, [specialRows.mutual, specialRows.mutualTls12]],
  ['HAProxy', haproxy, [...Object.values(specialRows), dateless, datelessClock]],
] as const) {
  corpus<WebServer>({
    server: `${title}${version(program)}`,
    missing: program.missing ?? opensslMissing(),
    start: async () => {
      if (!certificates) throw new Error('no certificates')
      return await startWebServer(program, certificates)
    },
    rows: [...rows, ...more],
  })
}
