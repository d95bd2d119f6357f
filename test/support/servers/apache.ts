import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ServerCertificate } from './certs.ts'
import { findProgram, freePort, type Running, remove, run, serverFolder } from './server.ts'

const program = findProgram('apache2')
export const apacheMissing = program === undefined ? 'apache2 is not installed' : undefined

export type Apache = Running & {
  readonly port: number
  /** Answers TLS if the server has a certificate. */
  readonly tlsPort: number
  /** Faults and answers that operators meet, as URLs of this server. */
  readonly urls: {
    /** A healthy page. */
    readonly healthy: string
    /** A health URL that was removed: 404. */
    readonly removed: string
    /** A page that requires HTTP basic sign-in: 401. */
    readonly protected: string
    /** A page that nobody may read: 403. */
    readonly forbidden: string
    /** Redirects to the healthy page: 302. */
    readonly moved: string
    /** Plain HTTP to the TLS port: 400. */
    readonly plainToTls: string
    /** A name that only the default virtual host answers: 404. `wrong.test` must resolve to 127.0.0.1. */
    readonly otherVirtualHost: string
  }
  readonly remove: () => Promise<void>
}

const modules = [
  'mpm_event',
  'authn_core',
  'authn_file',
  'authz_core',
  'authz_user',
  'auth_basic',
  'alias',
  'dir',
  'headers',
  'socache_shmcb',
  'ssl',
] as const

/** The account `monitor` with this password may read the protected page. */
export const apachePassword = 'apache-secret'
/** `htpasswd -nbs monitor apache-secret`. */
const passwords = 'monitor:{SHA}'

/**
 * A real Apache httpd on free ports of 127.0.0.1, plain and, with a certificate, under TLS. `wrong.test` and other
 * unknown names reach an empty default virtual host.
 */
export async function startApache(certificate?: ServerCertificate): Promise<Apache> {
  const folder = serverFolder('apache')
  const [port, tlsPort] = [await freePort(), await freePort()]
  const path = (name: string): string => join(folder, name)
  const write = (name: string, text: string): void => writeFileSync(path(name), text, { mode: 0o644 })
  for (const name of ['empty', 'site']) mkdirSync(path(name), { mode: 0o755 })
  write('site/index.html', '<h1>It works</h1>\n')
  const { createHash } = process.getBuiltinModule('node:crypto')
  write('passwords', `${passwords}${createHash('sha1').update(apachePassword).digest('base64')}\n`)
  if (certificate) {
    write('cert.pem', certificate.cert)
    write('key.pem', certificate.key)
  }
  const site = `DocumentRoot ${folder}/site
  <Directory ${folder}/site>
    Require all granted
  </Directory>
  Alias /protected ${folder}/site/index.html
  <Location /protected>
    AuthType Basic
    AuthName "Status, internal"
    AuthUserFile ${folder}/passwords
    Require valid-user
  </Location>
  <Location /forbidden>
    Require all denied
  </Location>
  Redirect 302 /moved /`
  const tls = `Listen 127.0.0.1:${tlsPort} https
<VirtualHost 127.0.0.1:${tlsPort}>
  ServerName localhost
  SSLEngine on
  SSLCertificateFile ${folder}/cert.pem
  SSLCertificateKeyFile ${folder}/key.pem
  ${site}
</VirtualHost>
`
  write(
    'apache.conf',
    `${modules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so\n`).join('')}
ServerRoot ${folder}
ServerName localhost
PidFile ${folder}/pid
Mutex file:${folder} default
ErrorLog "|/bin/cat"
LogLevel notice
StartServers 1
Listen 127.0.0.1:${port}
<VirtualHost 127.0.0.1:${port}>
  ServerName default.invalid
  DocumentRoot ${folder}/empty
  <Directory ${folder}/empty>
    Require all granted
  </Directory>
</VirtualHost>
<VirtualHost 127.0.0.1:${port}>
  ServerName localhost
  ServerAlias 127.0.0.1
  ${site}
</VirtualHost>
${certificate ? tls : ''}`,
  )
  const running = await run(
    program ?? '',
    ['-D', 'FOREGROUND', '-f', path('apache.conf')],
    /resuming normal operations/,
  )
  const at = `http://127.0.0.1:${port}`
  return {
    ...running,
    port,
    tlsPort,
    urls: {
      healthy: `${at}/`,
      removed: `${at}/removed-health`,
      protected: `${at}/protected`,
      forbidden: `${at}/forbidden`,
      moved: `${at}/moved`,
      plainToTls: `http://127.0.0.1:${tlsPort}/`,
      otherVirtualHost: `http://wrong.test:${port}/health`,
    },
    remove: async () => {
      await running.stop('SIGTERM')
      remove(folder)
    },
  }
}
