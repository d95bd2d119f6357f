import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram, freePort, remove, run, serverFolder } from './server.ts'

const find = (name: string): string | undefined =>
  findProgram(name) === undefined ? `${name} is not installed` : undefined
export const nginxMissing = find('nginx')
export const haproxyMissing = find('haproxy')

/** A real reverse proxy on a free port of 127.0.0.1, under the account nobody. */
export type ReverseProxy = AsyncDisposable & {
  readonly port: number
}

/** nginx as installed, whose `location` passes requests on with these lines. */
export async function startNginxProxy(lines: string, tls?: { readonly cert: string; readonly key: string }) {
  const folder = serverFolder('nginx-proxy')
  const port = await freePort()
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join(' ')
  if (tls) {
    writeFileSync(join(folder, 'cert.pem'), tls.cert)
    writeFileSync(join(folder, 'key.pem'), tls.key)
  }
  const secure = tls ? `ssl_certificate ${folder}/cert.pem; ssl_certificate_key ${folder}/key.pem;` : ''
  writeFileSync(
    join(folder, 'nginx.conf'),
    `worker_processes 1; daemon off; master_process off; pid ${folder}/pid; error_log stderr notice;
events { worker_connections 64; }
http { access_log off; ${temporary}
server { listen 127.0.0.1:${port}${tls ? ' ssl' : ''}; ${secure}
location / {
${lines}
} } }
`,
  )
  return await started('nginx', ['-e', 'stderr', '-p', folder, '-c', join(folder, 'nginx.conf')], /epoll/, port, folder)
}

/** HAProxy in mode http, whose frontend and backend have these further lines. */
export async function startHaproxy(
  server: string,
  { frontend = '', backend = '', pem }: { frontend?: string; backend?: string; pem?: string } = {},
) {
  const folder = serverFolder('haproxy')
  const port = await freePort()
  if (pem !== undefined) writeFileSync(join(folder, 'chain-and-key.pem'), pem)
  const secure = pem === undefined ? '' : ` ssl crt ${folder}/chain-and-key.pem`
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(
    file,
    `global
  log stderr format raw local0 notice
defaults
  mode http
  timeout client 30s
  timeout server 30s
  timeout connect 5s
frontend web
  bind 127.0.0.1:${port}${secure}
  default_backend svc
${frontend}
backend svc
${backend}
  server svc ${server}
`,
  )
  return await started('haproxy', ['-W', '-f', file], /Loading success/, port, folder)
}

async function started(
  name: string,
  args: readonly string[],
  ready: RegExp,
  port: number,
  folder: string,
): Promise<ReverseProxy> {
  const running = await run(findProgram(name) ?? name, args, ready)
  return {
    port,
    async [Symbol.asyncDispose]() {
      await running.stop('SIGTERM')
      remove(folder)
    },
  }
}
