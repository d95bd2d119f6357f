import { readFileSync } from 'node:fs'
import { status } from '@grpc/grpc-js'
import { afterAll } from 'vitest'
import { makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import { checkServer, type GrpcServer, grpcServer, healthServer } from '../support/servers/grpc.ts'
import { freePort } from '../support/servers/server.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { fails, type Row, warns } from './row.ts'

const certificates = opensslMissing() === undefined ? makeCertificates() : undefined
afterAll(() => certificates?.remove())

const env = { TOKEN: 'the token of the probe', WRONG: 'another token' }

type Servers = {
  readonly good: GrpcServer
  readonly plain: GrpcServer
  readonly expired: GrpcServer
  readonly fiveDays: GrpcServer
  readonly withoutHealth: GrpcServer
  readonly private: GrpcServer
  readonly full: GrpcServer
  readonly nowhere: { readonly port: number }
}

const call =
  (name: keyof Servers, more: object = {}) =>
  (servers: Servers) => ({ kind: 'grpc', host: '127.0.0.1', port: servers[name].port, ...more })
const secure = (name: keyof Servers, more: object = {}) =>
  call(name, { tls: true, caFile: certificates?.caFile, ...more })
const ask =
  (name: keyof Servers, service = '', tls = false) =>
  (servers: Servers): readonly PeerProgram[] => [
    {
      program: 'blackbox_exporter',
      module: {
        prober: 'grpc',
        grpc: {
          preferred_ip_protocol: 'ip4',
          service,
          ...(tls ? { tls: true, tls_config: { ca_file: certificates?.caFile } } : {}),
        },
      },
      target: `127.0.0.1:${servers[name].port}`,
    },
  ]

const rows: readonly Row<Servers>[] = [
  {
    fault: 'healthy over TLS',
    monitor: secure('good', { services: ['shop.v1.Orders'] }),
    expected: { state: 'healthy' },
    peers: ask('good', '', true),
  },
  { fault: 'healthy in clear text', monitor: call('plain'), expected: { state: 'healthy' }, peers: ask('plain') },
  {
    fault: 'healthy with a token',
    monitor: call('private', { token: { env: 'TOKEN' } }),
    expected: { state: 'healthy' },
    peers: ask('private'),
  },
  {
    fault: 'a service is not serving',
    monitor: secure('good', { services: ['shop.v1.Payments'] }),
    expected: fails('health', 'data', /NOT_SERVING for shop\.v1\.Payments/),
    peers: ask('good', 'shop.v1.Payments', true),
  },
  {
    fault: 'a service was removed',
    monitor: secure('good', { services: ['shop.v1.Removed'] }),
    expected: fails('health', 'data', /no status for shop\.v1\.Removed/),
    peers: ask('good', 'shop.v1.Removed', true),
  },
  {
    fault: 'the health service is missing',
    monitor: call('withoutHealth'),
    expected: fails('health', 'protocol', /no health service/),
    peers: ask('withoutHealth'),
  },
  {
    fault: 'the token was changed',
    monitor: call('private', { token: { env: 'WRONG' } }),
    expected: fails('health', 'auth', /refuses the token/),
    peers: ask('private'),
  },
  {
    fault: 'credentials are required',
    monitor: call('private'),
    expected: fails('health', 'auth', /asks for credentials/),
    peers: ask('private'),
  },
  {
    fault: 'the server is overloaded',
    monitor: call('full'),
    expected: fails('health', 'refused', /RESOURCE_EXHAUSTED/),
    peers: ask('full'),
  },
  {
    fault: 'TLS at a plain port',
    monitor: secure('plain'),
    expected: fails('connect', 'tls', /TLS/),
    peers: ask('plain', '', true),
  },
  {
    fault: 'clear text at a TLS port',
    monitor: call('good'),
    expected: fails('connect', 'protocol', /TLS|closed the connection/),
    peers: ask('good'),
  },
  {
    fault: 'an expired certificate',
    monitor: secure('expired'),
    expected: fails('connect', 'tls', /expired/),
    peers: ask('expired', '', true),
  },
  {
    fault: 'the certificate ends in 5 days',
    monitor: secure('fiveDays'),
    expected: warns('certificate', /in [45](?:\.\d)? d/),
    peers: ask('fiveDays', '', true),
  },
  {
    fault: 'the server is stopped',
    monitor: call('nowhere'),
    expected: fails('connect', 'refused', /refused/),
    peers: ask('nowhere'),
  },
]

const { version } = JSON.parse(
  readFileSync(new URL('../../node_modules/@grpc/grpc-js/package.json', import.meta.url), 'utf8'),
) as { readonly version: string }

const statuses = { '': 'SERVING', 'shop.v1.Orders': 'SERVING', 'shop.v1.Payments': 'NOT_SERVING' } as const

corpus<Servers>({
  server: `grpc-js ${version}`,
  env,
  missing: opensslMissing(),
  start: async () => {
    if (!certificates) throw new Error('no certificates')
    const { good, expired, fiveDays } = certificates
    return {
      good: await healthServer(statuses, good),
      plain: await healthServer(statuses),
      expired: await healthServer(statuses, expired),
      fiveDays: await healthServer(statuses, fiveDays),
      withoutHealth: await grpcServer(() => {}),
      private: await checkServer((metadata) =>
        metadata.get('authorization')[0] === `Bearer ${env.TOKEN}`
          ? undefined
          : { code: status.UNAUTHENTICATED, details: 'no token' },
      ),
      full: await checkServer(() => ({ code: status.RESOURCE_EXHAUSTED, details: 'too many requests' })),
      nowhere: { port: await freePort() },
    }
  },
  rows,
})
