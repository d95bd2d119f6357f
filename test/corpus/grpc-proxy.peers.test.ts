import { type GrpcServer, healthServer } from '../support/servers/grpc.ts'
import { nginxMissing, type ReverseProxy, startNginxProxy } from '../support/servers/reverse-proxy.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { fails, type Row } from './row.ts'

type Servers = { readonly behind: GrpcServer; readonly proxy: ReverseProxy }
const services = ['shop.v1.Orders', 'shop.v1.Carts', 'shop.v1.Users']

const ask =
  (service: string) =>
  ({ proxy }: Servers): readonly PeerProgram[] => [
    {
      program: 'blackbox_exporter',
      module: { prober: 'grpc', grpc: { preferred_ip_protocol: 'ip4', service } },
      target: `127.0.0.1:${proxy.port}`,
    },
  ]
const monitor = ({ proxy }: Servers) => ({ kind: 'grpc', host: '127.0.0.1', port: proxy.port, services })

const rows: readonly Row<Servers>[] = [
  {
    fault: 'healthy: the proxy ends the connection after every second call without an error, never met',
    monitor,
    expected: { state: 'healthy' },
    peers: ask(''),
  },
  {
    fault: 'a service does not serve behind a proxy that ends the connection after every second call, never met',
    monitor: (servers) => ({ ...monitor(servers), services: [...services, 'shop.v1.Gone'] }),
    expected: fails('health', 'any', /shop\.v1\.Gone/),
    peers: ask('shop.v1.Gone'),
  },
]

corpus<Servers>({
  server: 'grpc-health-check behind nginx with keepalive_requests 2',
  missing: nginxMissing,
  start: async () => {
    const statuses = Object.fromEntries(['', ...services].map((name) => [name, 'SERVING' as const]))
    const behind = await healthServer({ ...statuses, 'shop.v1.Gone': 'NOT_SERVING' })
    const proxy = await startNginxProxy(
      (port) =>
        `keepalive_requests 2; server { listen 127.0.0.1:${port} http2; location / { grpc_pass grpc://127.0.0.1:${behind.port}; } }`,
    )
    return { behind, proxy }
  },
  rows,
})
