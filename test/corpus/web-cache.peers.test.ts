import { setTimeout as pause } from 'node:timers/promises'
import { afterAll } from 'vitest'
import { makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import { apacheCache, haproxyCache, startWebCache, type WebCache } from '../support/servers/web-caches.ts'
import { apache, haproxy, nginx } from '../support/servers/web-servers.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { type Row, warns } from './row.ts'

const certificates = opensslMissing() === undefined ? makeCertificates() : undefined
afterAll(() => certificates?.remove())

const page =
  (more: object) =>
  ({ port }: WebCache) => ({ kind: 'http', url: `http://127.0.0.1:${port}/`, ...more })
const askPage = ({ port }: WebCache): readonly PeerProgram[] => [
  { program: 'check_http', args: ['-I', '127.0.0.1', '-p', String(port), '-s', 'It works'] },
  {
    program: 'blackbox_exporter',
    module: { prober: 'http', http: { preferred_ip_protocol: 'ip4', fail_if_body_not_matches_regexp: ['It works'] } },
    target: `http://127.0.0.1:${port}/`,
  },
]

const rows: readonly Row<WebCache>[] = [
  {
    fault: 'healthy through the cache',
    monitor: page({ contains: 'It works' }),
    expected: { state: 'healthy' },
    peers: askPage,
  },
  {
    fault: 'the application behind the cache is frozen',
    monitor: page({ contains: 'It works', maxAge: { warn: '1s' } }),
    plant: async ({ port, freezeOrigin, thawOrigin }) => {
      await (await fetch(`http://127.0.0.1:${port}/`)).text()
      freezeOrigin()
      await pause(3_500)
      return thawOrigin
    },
    expected: warns('cache', /answered from a cache, which stored the answer [\d.]+ s ago/),
    before: 'ok',
    peers: askPage,
  },
]

for (const [title, program] of [
  ['HAProxy', haproxyCache(haproxy)],
  ['Apache', apacheCache(apache)],
] as const) {
  corpus<WebCache>({
    server: `${title} as a cache in front of nginx`,
    missing: program.missing ?? nginx.missing ?? opensslMissing(),
    start: async () => {
      if (!certificates) throw new Error('no certificates')
      return await startWebCache(program, certificates)
    },
    rows,
  })
}
