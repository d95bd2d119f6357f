import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import type { Certificates } from './certs.ts'
import { findProgram, freePort, type Running, remove, run, serverFolder } from './server.ts'

/** The certificates that each server shows, each on a port of its own. */
const certificateNames = [
  'good',
  'expired',
  'otherHost',
  'commonNameOnly',
  'selfSigned',
  'fiveDays',
  'twoDays',
  'withoutIntermediate',
] as const
export type CertificateName = (typeof certificateNames)[number]

/**
 * Ports that are not for every client: `h2` and `h2Tls` speak HTTP/2 only, `mutual` and `mutualTls12` demand a
 * certificate of the client. Not every program offers each of them.
 */
const special = ['h2', 'h2Tls', 'mutual', 'mutualTls12'] as const
export type SpecialPort = (typeof special)[number]

/**
 * A real web server on ports of 127.0.0.1. It answers `/` with 200 and `It works`, `/gone` with 404, `/broken` with 503,
 * `/loop` with a redirect to itself, `/login-required` with one to `/login`, `/empty` with 200 and nothing, `/private` with
 * 401 (Basic) and `/forbidden` with 403.
 */
export type WebServer = {
  readonly port: number
  readonly tlsPort: Readonly<Record<CertificateName, number>>
  readonly specialPort: Readonly<Record<SpecialPort, number>>
  readonly caFile: string
  /** The folder with the files that nginx and Apache serve. */
  readonly pages: string
  readonly freeze: () => void
  readonly thaw: () => void
  readonly stop: () => Promise<void>
  /** Starts it again, on the same ports. */
  readonly start: () => Promise<void>
  readonly remove: () => Promise<void>
}

/** The answer of nginx and Apache to `/state.json`; `/jobs.xml` has one job of two that failed. */
const state = {
  version: '2.1.0',
  database: 'ok',
  jobs: [
    { id: 'index.html', state: 'done' },
    { id: 'missing.html', state: 'failed' },
  ],
}

const page = '<h1>It works</h1>\n'

/**
 * The pages of nginx and Apache below `/packed/CODING/`, each sent with that content coding: `page` is `/` in it, `raw`
 * is deflate without the header of zlib, `cut` ends too early, `plain` is not compressed, and `large` is 2 MiB of zeros.
 */
const packed: Readonly<Record<string, Uint8Array | string>> = {
  'gzip/page': gzipSync(page),
  'gzip/cut': gzipSync(page).subarray(0, 20),
  'gzip/plain': page,
  'gzip/empty': '',
  'gzip/large': gzipSync(Buffer.alloc(2 * 1024 * 1024)),
  'br/page': brotliCompressSync(page),
  'br/plain': page,
  'zstd/page': zstdCompressSync(page),
  'zstd/cut': zstdCompressSync(page).subarray(0, 20),
  'deflate/page': deflateSync(page),
  'deflate/raw': deflateRawSync(page),
  'utf-8/page': page,
}

/**
 * The pages of nginx and Apache below `/text/`: each has the word `Größe` in another encoding, which its `Content-Type`,
 * its byte order mark or its HTML names.
 */
const texts: Readonly<Record<string, Uint8Array>> = {
  'latin1.html': Buffer.from('<h1>Größe</h1>', 'latin1'),
  'meta.html': Buffer.from('<html><head><meta charset="iso-8859-1"></head><h1>Größe</h1>', 'latin1'),
  'utf16.html': Buffer.from('\uFEFF<h1>Größe</h1>', 'utf16le'),
  'mark.json': Buffer.from('\uFEFF{"name": "Größe"}'),
  'latin1.json': Buffer.from('{"name": "Größe"}', 'latin1'),
}

type Ports = Pick<WebServer, 'port' | 'tlsPort' | 'specialPort'>

/** How one program is configured and started. */
export type WebProgram = {
  readonly name: string
  readonly missing: string | undefined
  readonly configuration: (folder: string, ports: Ports) => string
  readonly args: (file: string, folder: string) => readonly string[]
  readonly ready: RegExp
}

/** Free ports, each another one: a port that is free may be offered again, because nothing listens on it yet. */
async function freePorts<const Name extends string>(names: readonly Name[]): Promise<Record<Name, number>> {
  const ports = new Map<Name, number>()
  while (ports.size < names.length) {
    const port = await freePort()
    const [next] = names.filter((name) => !ports.has(name))
    if (next !== undefined && ![...ports.values()].includes(port)) ports.set(next, port)
  }
  return Object.fromEntries(ports) as Record<Name, number>
}

export async function startWebServer(program: WebProgram, certificates: Certificates): Promise<WebServer> {
  const folder = serverFolder(program.name)
  const { port, ...others } = await freePorts(['port', ...certificateNames, ...special])
  const ports = { port, tlsPort: others, specialPort: others }
  mkdirSync(join(folder, 'www'), { mode: 0o755 })
  writeFileSync(join(folder, 'www', 'index.html'), page)
  writeFileSync(join(folder, 'www', 'aged.html'), page)
  for (const [name, bytes] of Object.entries(packed)) {
    mkdirSync(join(folder, 'www', 'packed', name, '..'), { recursive: true, mode: 0o755 })
    writeFileSync(join(folder, 'www', 'packed', name), bytes)
  }
  mkdirSync(join(folder, 'www', 'text'), { mode: 0o755 })
  for (const [name, bytes] of Object.entries(texts)) writeFileSync(join(folder, 'www', 'text', name), bytes)
  writeFileSync(join(folder, 'www', 'empty'), '')
  writeFileSync(join(folder, 'www', 'state.json'), JSON.stringify(state))
  writeFileSync(join(folder, 'www', 'jobs.xml'), '<jobs version="2"><job state="done"/><job state="failed"/></jobs>\n')
  writeFileSync(join(folder, 'ca.pem'), certificates.ca)
  writeFileSync(join(folder, 'passwords'), 'probe:{PLAIN}probe\n')
  for (const name of certificateNames) {
    const { cert, key } = certificates[name]
    writeFileSync(join(folder, `${name}.crt`), cert)
    writeFileSync(join(folder, `${name}.key`), key)
    writeFileSync(join(folder, `${name}.pem`), `${cert}\n${key}`)
  }
  const file = join(folder, 'server.conf')
  writeFileSync(file, program.configuration(folder, ports))
  const begin = (): Promise<Running> =>
    run(findProgram(program.name) ?? program.name, program.args(file, folder), program.ready)
  let running = await begin()
  return {
    ...ports,
    caFile: certificates.caFile,
    pages: join(folder, 'www'),
    freeze: () => running.freeze(),
    thaw: () => running.thaw(),
    stop: () => running.stop('SIGTERM'),
    start: async () => {
      running = await begin()
    },
    remove: async () => {
      await running.stop('SIGTERM')
      remove(folder)
    },
  }
}

const missing = (name: string): string | undefined =>
  findProgram(name) === undefined ? `${name} is not installed` : undefined

export const nginx: WebProgram = {
  name: 'nginx',
  missing: missing('nginx'),
  args: (file, folder) => ['-e', 'stderr', '-p', folder, '-c', file],
  ready: /start worker|using the "epoll" event method|built by/,
  configuration: (folder, { port, tlsPort, specialPort }) => {
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
      .map((name) => `${name}_temp_path ${folder}/${name};`)
      .join(' ')
    const pages = `root ${folder}/www;
  location /broken { return 503; }
  location /loop { return 302 /loop; }
  location /login-required { return 302 /login; }
  location /moved { return 301 https://127.0.0.1:${tlsPort.twoDays}/; }
  location /private { auth_basic operators; auth_basic_user_file ${folder}/passwords; }
  location /forbidden { deny all; }
  location = /twice { default_type text/html; add_header Content-Length 18; return 200 'It works'; }
  location = /aged.html { add_header Age 300; }
  location ~ ^/packed/([^/]+)/ { default_type text/html; add_header Content-Encoding $1; }
  location ~ ^/text/latin1 { types {} default_type 'text/html; charset=ISO-8859-1'; }`
    const tls = certificateNames.map(
      (name) => `server { listen 127.0.0.1:${tlsPort[name]} ssl; ssl_certificate ${folder}/${name}.crt;
  ssl_certificate_key ${folder}/${name}.key; ${pages} }`,
    )
    const mutual = [
      [specialPort.mutual, 'TLSv1.3'],
      [specialPort.mutualTls12, 'TLSv1.2'],
    ].map(
      ([demanding, version]) => `server { listen 127.0.0.1:${demanding} ssl; ssl_certificate ${folder}/good.crt;
  ssl_certificate_key ${folder}/good.key; ssl_protocols ${version}; ssl_client_certificate ${folder}/ca.pem;
  ssl_verify_client on; ${pages} }`,
    )
    return `worker_processes 1; daemon off; master_process off; pid ${folder}/pid; error_log stderr notice;
events { worker_connections 64; }
http { access_log off; ${temporary}
server { listen 127.0.0.1:${port}; ${pages} }
${tls.join('\n')}
server { listen 127.0.0.1:${specialPort.h2} http2; ${pages} }
${mutual.join('\n')}
}
`
  },
}

const apacheModules = [
  'mpm_event',
  'authn_core',
  'authn_file',
  'authz_core',
  'authz_user',
  'auth_basic',
  'dir',
  'headers',
  'rewrite',
  'socache_shmcb',
  'ssl',
]

export const apache: WebProgram = {
  name: 'apache2',
  missing: missing('apache2'),
  args: (file) => ['-D', 'FOREGROUND', '-f', file],
  ready: /resuming normal operations/,
  configuration: (folder, { port, tlsPort, specialPort }) => {
    const pages = `DocumentRoot ${folder}/www
  RewriteEngine on
  RewriteRule ^/broken$ - [R=503,L]
  RewriteRule ^/loop$ /loop [R=302,L]
  RewriteRule ^/login-required$ /login [R=302,L]
  RewriteRule ^/moved$ https://127.0.0.1:${tlsPort.twoDays}/ [R=301,L]
  <Location /private>
    AuthType Basic
    AuthName operators
    AuthUserFile ${folder}/passwords
    Require valid-user
  </Location>
  <Location /forbidden>
    Require all denied
  </Location>
  <Location /aged.html>
    Header set Age 300
  </Location>
  <LocationMatch "^/packed/(?<coding>[^/]+)/">
    Header set Content-Encoding %{MATCH_CODING}e
  </LocationMatch>
  <LocationMatch "^/text/latin1">
    Header set Content-Type "text/html; charset=ISO-8859-1"
  </LocationMatch>`
    const mutual = [
      [specialPort.mutual, 'TLSv1.3'],
      [specialPort.mutualTls12, 'TLSv1.2'],
    ].map(
      ([demanding, version]) => `Listen 127.0.0.1:${demanding}
<VirtualHost 127.0.0.1:${demanding}>
  SSLEngine on
  SSLProtocol ${version}
  SSLCertificateFile ${folder}/good.crt
  SSLCertificateKeyFile ${folder}/good.key
  SSLCACertificateFile ${folder}/ca.pem
  SSLVerifyClient require
  SSLVerifyDepth 3
  ${pages}
</VirtualHost>`,
    )
    const tls = certificateNames.map(
      (name) => `Listen 127.0.0.1:${tlsPort[name]}
<VirtualHost 127.0.0.1:${tlsPort[name]}>
  SSLEngine on
  SSLCertificateFile ${folder}/${name}.crt
  SSLCertificateKeyFile ${folder}/${name}.key
  ${pages}
</VirtualHost>`,
    )
    return `${apacheModules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join('\n')}
ServerName localhost
ServerRoot ${folder}
PidFile ${folder}/pid
DefaultRuntimeDir ${folder}
ErrorLog "|$/bin/cat >&2"
LogLevel notice
StartServers 1
Listen 127.0.0.1:${port}
<VirtualHost 127.0.0.1:${port}>
  ${pages}
</VirtualHost>
${tls.join('\n')}
${mutual.join('\n')}
`
  },
}

export const haproxy: WebProgram = {
  name: 'haproxy',
  missing: missing('haproxy'),
  args: (file) => ['-W', '-f', file],
  ready: /Loading success/,
  configuration: (folder, { port, tlsPort, specialPort }) => `global
  log stderr format raw local0 notice
defaults
  mode http
  timeout client 30s
  timeout server 30s
  timeout connect 5s
userlist operators
  user probe insecure-password probe
frontend web
  bind 127.0.0.1:${port}
${certificateNames.map((name) => `  bind 127.0.0.1:${tlsPort[name]} ssl crt ${folder}/${name}.pem`).join('\n')}
  bind 127.0.0.1:${specialPort.h2} proto h2
  bind 127.0.0.1:${specialPort.h2Tls} ssl crt ${folder}/good.pem alpn h2 proto h2
  bind 127.0.0.1:${specialPort.mutual} ssl crt ${folder}/good.pem ca-file ${folder}/ca.pem verify required ssl-min-ver TLSv1.3
  bind 127.0.0.1:${specialPort.mutualTls12} ssl crt ${folder}/good.pem ca-file ${folder}/ca.pem verify required ssl-max-ver TLSv1.2
  http-request set-var(txn.dateless) bool(true) if { path /dateless }
  http-after-response set-header Date %[date,http_date] unless { var(txn.dateless) -m bool }
  http-request return status 404 content-type text/plain string "not here" if { path /gone }
  http-request return status 503 content-type text/plain string "broken" if { path /broken }
  http-request redirect location /loop code 302 if { path /loop }
  http-request redirect location /login code 302 if { path /login-required }
  http-request redirect location https://127.0.0.1:${tlsPort.twoDays}/ code 301 if { path /moved }
  http-request auth realm operators if { path /private } !{ http_auth(operators) }
  http-request deny deny_status 403 if { path /forbidden }
  http-request return status 200 if { path /empty }
  http-request return status 200 content-type text/html string "<h1>It works</h1>"
`,
}
