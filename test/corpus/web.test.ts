import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll } from 'vitest'
import { makeCertificates, opensslMissing } from '../support/certs.ts'
import { apache, haproxy, nginx, startWebServer, type WebProgram, type WebServer } from '../support/web-servers.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import type { Row } from './row.ts'

const certificates = opensslMissing() === undefined ? makeCertificates() : undefined
afterAll(() => certificates?.remove())

const plain =
  (path: string, more: object = {}) =>
  ({ port }: WebServer) => ({
    kind: 'http',
    url: `http://127.0.0.1:${port}${path}`,
    ...more,
  })
const secure =
  (name: keyof WebServer['tlsPort'], more: object = {}) =>
  ({ tlsPort, caFile }: WebServer) => ({
    kind: 'http',
    url: `https://127.0.0.1:${tlsPort[name]}/`,
    caFile,
    ...more,
  })
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
    expected: { state: 'unhealthy', check: 'status', says: /\b404\b/ },
    before: 'ok',
    peers: askPlain('/gone'),
  },
  {
    fault: 'the application is broken',
    monitor: plain('/broken'),
    expected: { state: 'unhealthy', check: 'status', says: /\b503\b/ },
    peers: askPlain('/broken'),
  },
  {
    fault: 'a page redirects to itself',
    monitor: plain('/loop', { redirects: 3 }),
    expected: { state: 'unhealthy', check: 'status', says: /redirect/i },
    peers: askPlain('/loop'),
  },
  {
    fault: 'the application redirects to a login page',
    monitor: plain('/login-required'),
    expected: { state: 'unhealthy', check: 'status', fault: 'data', says: /redirects to .*\/login .*redirects: 3/ },
    before: 'ok',
    peers: askPlain('/login-required'),
  },
  {
    fault: 'the answer is empty',
    monitor: plain('/empty'),
    expected: { state: 'warning', check: 'empty body', says: /200 with an empty body/ },
    before: 'ok',
    peers: askPlain('/empty'),
  },
  {
    fault: 'a sign-in is required',
    monitor: plain('/private'),
    expected: { state: 'unhealthy', check: 'status', fault: 'auth', says: /\b401\b.*Basic.*username and password/ },
    before: 'ok',
    peers: askPlain('/private'),
  },
  {
    fault: 'access is forbidden',
    monitor: plain('/forbidden'),
    expected: { state: 'unhealthy', check: 'status', fault: 'auth', says: /\b403\b.*forbids access/ },
    before: 'ok',
    peers: askPlain('/forbidden'),
  },
  {
    fault: 'another page than expected',
    monitor: plain('/', { contains: 'Orders' }),
    expected: { state: 'unhealthy', check: 'content', fault: 'data', says: /Orders/ },
    peers: askPlain('/', '-s', 'Orders'),
  },
  {
    fault: 'plain HTTP at a TLS port',
    monitor: ({ tlsPort }) => ({ kind: 'http', url: `http://127.0.0.1:${tlsPort.good}/` }),
    expected: { state: 'unhealthy', check: 'status', says: /TLS|https|\b400\b|closed the connection/i },
    before: 'ok',
    peers: ({ tlsPort }) => [{ program: 'check_http', args: ['-I', '127.0.0.1', '-p', String(tlsPort.good)] }],
  },
  {
    fault: 'TLS at a plain port',
    monitor: ({ port, caFile }) => ({ kind: 'http', url: `https://127.0.0.1:${port}/`, caFile }),
    expected: { state: 'unhealthy', check: 'connect', fault: 'tls', says: /TLS/ },
    peers: ({ port }) => [{ program: 'check_http', args: ['-S', '-I', '127.0.0.1', '-p', String(port)] }],
  },
  {
    fault: 'an expired certificate',
    monitor: secure('expired'),
    expected: { state: 'unhealthy', check: 'connect', fault: 'tls', says: /expired/ },
    peers: askSecure('expired'),
  },
  {
    fault: 'a certificate for another name',
    monitor: secure('wrongHost'),
    expected: { state: 'unhealthy', check: 'connect', fault: 'tls', says: /elsewhere\.test/ },
    peers: askSecure('wrongHost'),
  },
  {
    fault: 'a self-signed certificate',
    monitor: secure('selfSigned'),
    expected: { state: 'unhealthy', check: 'connect', fault: 'tls', says: /self-signed|not trusted/ },
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
    expected: { state: 'unhealthy', check: 'connect', fault: 'tls', says: /fingerprint/, never: /not trusted/ },
    peers: askSecure('good'),
  },
  {
    fault: 'the certificate has a common name only',
    monitor: secure('commonNameOnly', { servername: 'svc.test' }),
    expected: { state: 'unhealthy', check: 'connect', fault: 'tls', says: /common name|subject/i },
    peers: askSecure('commonNameOnly'),
  },
  {
    fault: 'the intermediate certificate is missing',
    monitor: secure('withoutIntermediate'),
    expected: { state: 'unhealthy', check: 'connect', fault: 'tls', says: /intermediate|chain|issuer/ },
    peers: askSecure('withoutIntermediate'),
  },
  {
    fault: 'the certificate ends in 5 days',
    monitor: secure('fiveDays'),
    expected: { state: 'warning', check: 'certificate', says: /in [45](?:\.\d)? d/ },
    peers: askSecure('fiveDays'),
  },
  {
    fault: 'the certificate ends in 2 days',
    monitor: secure('twoDays'),
    expected: { state: 'unhealthy', check: 'certificate', fault: 'threshold', says: /in [12](?:\.\d)? d/ },
    peers: askSecure('twoDays'),
  },
  {
    fault: 'the server is frozen',
    monitor: plain('/', { timeout: '2s' }),
    plant: async (server) => {
      server.freeze()
      return server.thaw
    },
    expected: { state: 'unhealthy', check: 'status', fault: 'timeout', says: /did not answer within 2 s/ },
    peers: askPlain('/', '-t', '3'),
  },
  {
    fault: 'the server is stopped',
    monitor: plain('/'),
    plant: async (server) => {
      await server.stop()
      return server.start
    },
    expected: { state: 'unhealthy', check: 'connect', fault: 'refused', says: /refused/ },
    peers: askPlain('/'),
  },
]

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
    fault: 'healthy XML',
    monitor: plain('/jobs.xml', { xml: { '/jobs/@version': '2' }, measure: [failedJobs(1)] }),
    expected: { state: 'healthy' },
    peers: askPlain('/jobs.xml'),
  },
  {
    fault: 'a header was removed',
    monitor: plain('/state.json', { header: { 'strict-transport-security': '/max-age/' } }),
    expected: { state: 'unhealthy', check: 'header', fault: 'data', says: /no header strict-transport-security/ },
    peers: askPlain('/state.json', '-d', 'Strict-Transport-Security'),
  },
  {
    fault: 'an old version is running',
    monitor: plain('/state.json', { version: { expected: '2.2.0' } }),
    expected: { state: 'unhealthy', check: 'version', fault: 'data', says: /2\.1\.0.*2\.2\.0/ },
    peers: askPlain('/state.json'),
  },
  {
    fault: 'the application reports a fault in JSON',
    monitor: plain('/state.json', { json: { '$.database': 'primary' } }),
    expected: { state: 'unhealthy', check: 'json', fault: 'data', says: /database.*ok.*primary/ },
    peers: askPlain('/state.json'),
  },
  {
    fault: 'JSON was replaced by a page',
    monitor: plain('/', { json: { '$.database': 'ok' } }),
    expected: { state: 'unhealthy', check: 'json', says: /JSON/ },
    peers: askPlain('/'),
  },
  {
    fault: 'too many failed jobs in XML',
    monitor: plain('/jobs.xml', { measure: [failedJobs(0)] }),
    expected: { state: 'unhealthy', check: 'measure', says: /failed.*\b1\b/ },
    peers: askPlain('/jobs.xml'),
  },
  {
    fault: 'another version of XML than expected',
    monitor: plain('/jobs.xml', { xml: { '/jobs/@version': '3' } }),
    expected: { state: 'unhealthy', check: 'xml', fault: 'data', says: /version.*2.*3/ },
    peers: askPlain('/jobs.xml'),
  },
  {
    fault: 'a link leads nowhere',
    monitor: plain('/state.json', { links: [jobLink('failed')] }),
    expected: { state: 'unhealthy', check: 'links', says: /missing\.html.*404|404.*missing\.html/ },
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
    expected: { state: 'unhealthy', check: 'last modified', fault: 'threshold', says: /content changed .* ago/ },
    peers: askPlain('/state.json', '-M', '1s'),
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
    stop: (server) => server.remove(),
    rows: documentRows,
  })
}

for (const [title, program] of [
  ['nginx', nginx],
  ['Apache', apache],
  ['HAProxy', haproxy],
] as const) {
  corpus<WebServer>({
    server: `${title}${version(program)}`,
    missing: program.missing ?? opensslMissing(),
    start: async () => {
      if (!certificates) throw new Error('no certificates')
      return await startWebServer(program, certificates)
    },
    stop: (server) => server.remove(),
    rows,
  })
}
