import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ServerCertificate } from './certs.ts'
import { findProgram, freePort, type Running, remove, run, serverFolder } from './server.ts'

export type OpensslServer = Running & { readonly port: number; readonly remove: () => Promise<void> }

/**
 * A real TLS server of the `openssl` program on a free port of 127.0.0.1, which shows a certificate and its chain.
 * `options` are those of `openssl s_server`, such as `-tls1_1`; `for:NAME` shows the same certificate, but only for that
 * name.
 */
export async function startOpenssl(
  { key, cert, staple }: ServerCertificate,
  options: readonly string[] = [],
): Promise<OpensslServer> {
  const folder = serverFolder('openssl')
  const write = (name: string, text: string | Uint8Array): string => {
    const path = join(folder, name)
    writeFileSync(path, text, { mode: 0o644 })
    return path
  }
  const own = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----\n?/.exec(cert)?.[0] ?? ''
  const rest = cert.slice(cert.indexOf(own) + own.length)
  const port = await freePort()
  const only = /^for:(.+)$/.exec(options[0] ?? '')?.[1]
  const forName = ['-servername', only ?? '', '-servername_fatal', '-cert2', 'cert.pem', '-key2', 'key.pem'].map(
    (one) => (one.endsWith('.pem') ? join(folder, one) : one),
  )
  const running = await run(
    findProgram('openssl') ?? 'openssl',
    [
      ...['s_server', '-accept', `127.0.0.1:${port}`, '-cert', write('cert.pem', own), '-key', write('key.pem', key)],
      ...(rest.trim() === '' ? [] : ['-cert_chain', write('chain.pem', rest)]),
      ...(staple ? ['-status_file', write('staple.der', staple)] : []),
      // A page about the session, so that clients that send a request get an answer.
      ...['-www', ...(only === undefined ? options : forName)],
    ],
    /ACCEPT/,
  )
  return {
    ...running,
    port,
    remove: async () => {
      await running.stop('SIGTERM')
      remove(folder)
    },
  }
}
