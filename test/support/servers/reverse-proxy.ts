import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram, freePort, remove, run, serverFolder } from './server.ts'

const find = (name: string): string | undefined =>
  findProgram(name) === undefined ? `${name} is not installed` : undefined
export const nginxMissing = find('nginx')
export const haproxyMissing = find('haproxy')

/** A real reverse proxy on a free port of 127.0.0.1, under the account nobody. */
export type ReverseProxy = AsyncDisposable & { readonly port: number }

/** nginx with these lines in its section `http`, made for the port on which it listens. */
export async function startNginxProxy(linesFor: (port: number, folder: string) => string): Promise<ReverseProxy> {
  const folder = serverFolder('nginx-proxy')
  const port = await freePort()
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join(' ')
  const file = join(folder, 'nginx.conf')
  writeFileSync(
    file,
    `worker_processes 1; daemon off; master_process off; pid ${folder}/pid; error_log stderr notice;
events { worker_connections 64; }
http { access_log off; ${temporary}
${linesFor(port, folder)}
}
`,
  )
  return await started('nginx', ['-e', 'stderr', '-p', folder, '-c', file], /epoll/, port, folder)
}

/** HAProxy with these sections, made for the port on which it listens. */
export async function startHaproxy(sectionsFor: (port: number, folder: string) => string): Promise<ReverseProxy> {
  const folder = serverFolder('haproxy')
  const port = await freePort()
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(
    file,
    `global
  log stderr format raw local0 notice
defaults
  timeout client 30s
  timeout server 30s
  timeout connect 5s
${sectionsFor(port, folder)}
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
