import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram, freePort, type Running, remove, run, serverFolder } from './server.ts'

const program = findProgram('nginx')
export const nginxMissing = program === undefined ? 'nginx is not installed' : undefined

export type Nginx = Running & { readonly port: number; readonly tlsPort: number; readonly remove: () => Promise<void> }

/**
 * A real nginx on free ports of 127.0.0.1, plain and, with a certificate, under TLS. With accounts, `/private` requires
 * one, and `/limited` serves one connection at a time.
 */
export async function startNginx(
  certificate?: { readonly key: string; readonly cert: string; readonly clientCa?: string },
  accounts?: Readonly<Record<string, string>>,
): Promise<Nginx> {
  const folder = serverFolder('nginx')
  const [port, tlsPort] = [await freePort(), await freePort()]
  mkdirSync(join(folder, 'www'), { mode: 0o755 })
  writeFileSync(join(folder, 'www', 'index.html'), '<h1>It works</h1>\n')
  const demands =
    certificate?.clientCa === undefined
      ? ''
      : `ssl_verify_client on; ssl_verify_depth 3; ssl_client_certificate ${certificate.clientCa};`
  const tls = certificate
    ? `server { listen 127.0.0.1:${tlsPort} ssl; ssl_certificate ${folder}/cert.pem; ssl_certificate_key ${folder}/key.pem; ${demands} root ${folder}/www; }`
    : ''
  if (certificate) {
    writeFileSync(join(folder, 'cert.pem'), certificate.cert)
    writeFileSync(join(folder, 'key.pem'), certificate.key)
  }
  writeFileSync(join(folder, 'www', 'private'), 'for accounts\n')
  writeFileSync(join(folder, 'www', 'limited'), 'x'.repeat(1_024 ** 2))
  const secured = accounts
    ? `location /private { auth_basic "drill"; auth_basic_user_file ${folder}/accounts; }
      location /limited { limit_conn one 1; limit_rate 100; }`
    : ''
  const lines = Object.entries(accounts ?? {}).map(([name, password]) => `${name}:{PLAIN}${password}\n`)
  writeFileSync(join(folder, 'accounts'), lines.join(''))
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join(' ')
  writeFileSync(
    join(folder, 'nginx.conf'),
    `worker_processes 1; daemon off; master_process off; pid ${folder}/pid; error_log stderr notice;
events { worker_connections 64; }
http { access_log off; limit_conn_zone $server_port zone=one:1m; ${temporary} server { listen 127.0.0.1:${port}; root ${folder}/www; ${secured} } ${tls} }
`,
  )
  const running = await run(
    program ?? '',
    ['-e', 'stderr', '-p', folder, '-c', join(folder, 'nginx.conf')],
    /start worker|using the "epoll" event method|built by/,
  )
  return {
    ...running,
    port,
    tlsPort,
    remove: async () => {
      await running.stop('SIGTERM')
      remove(folder)
    },
  }
}
