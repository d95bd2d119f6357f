import { utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Certificates } from './certs.ts'
import { findProgram, freePort, remove, run, serverFolder } from './server.ts'
import { nginx, startWebServer, type WebProgram } from './web-servers.ts'

/** A real cache in front of nginx. Both serve the pages of `WebServer`, and the cache keeps them for ten minutes. */
export type WebCache = {
  readonly port: number
  readonly freezeOrigin: () => void
  readonly thawOrigin: () => void
  readonly remove: () => Promise<void>
}

/** How a cache is configured for its port and the port of its origin. */
export type CacheProgram = Omit<WebProgram, 'configuration'> & {
  readonly configuration: (folder: string, port: number, origin: number) => string
}

export async function startWebCache(program: CacheProgram, certificates: Certificates): Promise<WebCache> {
  const origin = await startWebServer(nginx, certificates)
  // Some caches derive from this time how long a page is fresh: a page that was just modified is the hardest case.
  const modified = Date.now() / 1_000 - 1
  utimesSync(join(origin.pages, 'index.html'), modified, modified)
  const folder = serverFolder(`${program.name}-cache`)
  const port = await freePort()
  const file = join(folder, 'cache.conf')
  writeFileSync(file, program.configuration(folder, port, origin.port))
  const running = await run(findProgram(program.name) ?? program.name, program.args(file, folder), program.ready)
  return {
    port,
    freezeOrigin: origin.freeze,
    thawOrigin: origin.thaw,
    remove: async () => {
      await running.stop('SIGTERM')
      await origin.remove()
      remove(folder)
    },
  }
}

export const haproxyCache = (program: WebProgram): CacheProgram => ({
  ...program,
  configuration: (_, port, origin) => `global
  log stderr format raw local0 notice
defaults
  mode http
  timeout client 30s
  timeout server 30s
  timeout connect 5s
cache pages
  total-max-size 4
  max-age 600
frontend web
  bind 127.0.0.1:${port}
  http-request del-header cache-control
  http-request cache-use pages
  http-response set-header Cache-Control max-age=600
  http-response cache-store pages
  default_backend origin
backend origin
  server one 127.0.0.1:${origin}
`,
})

/**
 * `CacheDefaultExpire` is only for pages without a modification time: a page that was modified a second before its first
 * request would be fresh for a tenth of a second. mod_cache_socache then asks its origin again, and after a 304 answers
 * 200 with an empty body.
 */
export const apacheCache = (program: WebProgram): CacheProgram => ({
  ...program,
  configuration: (folder, port, origin) => {
    const modules = [
      'mpm_event',
      'authz_core',
      'cache',
      'cache_socache',
      'headers',
      'proxy',
      'proxy_http',
      'socache_shmcb',
    ]
    return `${modules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join('\n')}
ServerName localhost
ServerRoot ${folder}
PidFile ${folder}/pid
DefaultRuntimeDir ${folder}
ErrorLog "|$/bin/cat >&2"
LogLevel notice
StartServers 1
Listen 127.0.0.1:${port}
CacheSocache shmcb
CacheEnable socache /
CacheIgnoreCacheControl On
CacheStoreNoStore On
CacheDefaultExpire 600
CacheMinExpire 600
CacheQuickHandler on
ProxyPass / http://127.0.0.1:${origin}/
`
  },
})
