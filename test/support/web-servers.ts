import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Certificates } from './certs.ts'
import { findProgram, freePort, type Running, remove, run, serverFolder } from './server.ts'

/** The certificates that each server shows, each on a port of its own. */
const shown = [
  'good',
  'expired',
  'wrongHost',
  'commonNameOnly',
  'selfSigned',
  'fiveDays',
  'twoDays',
  'withoutIntermediate',
] as const
export type CertificateName = (typeof shown)[number]

/**
 * A real web server on ports of 127.0.0.1. It answers `/` with 200 and `It works`, `/gone` with 404, `/broken` with 503,
 * `/loop` with a redirect to itself, `/login-required` with one to `/login`, `/empty` with 200 and nothing, `/private` with
 * 401 (Basic) and `/forbidden` with 403.
 */
export type WebServer = {
  readonly port: number
  readonly tlsPort: Readonly<Record<CertificateName, number>>
  readonly caFile: string
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

type Ports = Pick<WebServer, 'port' | 'tlsPort'>

/** How one program is configured and started. */
export type WebProgram = {
  readonly name: string
  readonly missing: string | undefined
  readonly configuration: (folder: string, ports: Ports) => string
  readonly args: (file: string, folder: string) => readonly string[]
  readonly ready: RegExp
}

const tlsPorts = async (): Promise<Record<CertificateName, number>> => {
  const ports: Partial<Record<CertificateName, number>> = {}
  for (const name of shown) {
    // A port that is free may be offered again, because nothing listens on it yet.
    do ports[name] = await freePort()
    while (Object.entries(ports).some(([other, port]) => other !== name && port === ports[name]))
  }
  return ports as Record<CertificateName, number>
}

export async function startWebServer(program: WebProgram, certificates: Certificates): Promise<WebServer> {
  const folder = serverFolder(program.name)
  const ports = { port: await freePort(), tlsPort: await tlsPorts() }
  mkdirSync(join(folder, 'www'), { mode: 0o755 })
  writeFileSync(join(folder, 'www', 'index.html'), '<h1>It works</h1>\n')
  writeFileSync(join(folder, 'www', 'empty'), '')
  writeFileSync(join(folder, 'www', 'state.json'), JSON.stringify(state))
  writeFileSync(join(folder, 'www', 'jobs.xml'), '<jobs version="2"><job state="done"/><job state="failed"/></jobs>\n')
  writeFileSync(join(folder, 'passwords'), 'probe:{PLAIN}probe\n')
  for (const name of shown) {
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
  configuration: (folder, { port, tlsPort }) => {
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
      .map((name) => `${name}_temp_path ${folder}/${name};`)
      .join(' ')
    const pages = `root ${folder}/www;
  location /broken { return 503; }
  location /loop { return 302 /loop; }
  location /login-required { return 302 /login; }
  location /private { auth_basic operators; auth_basic_user_file ${folder}/passwords; }
  location /forbidden { deny all; }`
    const tls = shown.map(
      (name) => `server { listen 127.0.0.1:${tlsPort[name]} ssl; ssl_certificate ${folder}/${name}.crt;
  ssl_certificate_key ${folder}/${name}.key; ${pages} }`,
    )
    return `worker_processes 1; daemon off; master_process off; pid ${folder}/pid; error_log stderr notice;
events { worker_connections 64; }
http { access_log off; ${temporary}
server { listen 127.0.0.1:${port}; ${pages} }
${tls.join('\n')}
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
  'rewrite',
  'socache_shmcb',
  'ssl',
]

export const apache: WebProgram = {
  name: 'apache2',
  missing: missing('apache2'),
  args: (file) => ['-D', 'FOREGROUND', '-f', file],
  ready: /resuming normal operations/,
  configuration: (folder, { port, tlsPort }) => {
    const pages = `DocumentRoot ${folder}/www
  RewriteEngine on
  RewriteRule ^/broken$ - [R=503,L]
  RewriteRule ^/loop$ /loop [R=302,L]
  RewriteRule ^/login-required$ /login [R=302,L]
  <Location /private>
    AuthType Basic
    AuthName operators
    AuthUserFile ${folder}/passwords
    Require valid-user
  </Location>
  <Location /forbidden>
    Require all denied
  </Location>`
    const tls = shown.map(
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
`
  },
}

export const haproxy: WebProgram = {
  name: 'haproxy',
  missing: missing('haproxy'),
  args: (file) => ['-W', '-f', file],
  ready: /Loading success/,
  configuration: (folder, { port, tlsPort }) => `global
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
${shown.map((name) => `  bind 127.0.0.1:${tlsPort[name]} ssl crt ${folder}/${name}.pem`).join('\n')}
  http-after-response set-header Date %[date,http_date]
  http-request return status 404 content-type text/plain string "not here" if { path /gone }
  http-request return status 503 content-type text/plain string "broken" if { path /broken }
  http-request redirect location /loop code 302 if { path /loop }
  http-request redirect location /login code 302 if { path /login-required }
  http-request auth realm operators if { path /private } !{ http_auth(operators) }
  http-request deny deny_status 403 if { path /forbidden }
  http-request return status 200 if { path /empty }
  http-request return status 200 content-type text/html string "<h1>It works</h1>"
`,
}
