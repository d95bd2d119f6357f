/** The monitors of the schedule bench, as svc.yaml and as the configuration of Prometheus and blackbox_exporter. */
import { writeKey } from '../../src/core/checks/engine/index.ts'
import { phaseOf } from '../../src/core/watch/schedule/due.ts'
import { addressAt, blocks, pathOf } from './peer.ts'

/** How many monitors of each kind. */
export type Mix = { readonly http: number; readonly tls: number; readonly postgres: number }
export const total = ({ http, tls, postgres }: Mix): number => http + tls + postgres
export const kinds = ['http', 'tls', 'postgres'] as const
type Kind = (typeof kinds)[number]

/** Addresses that HTTP answers on: so many that four runs at a time per host bind nothing. */
export const httpAddresses = 250
/** Addresses of PostgreSQL, of which each has one run at a time, because it is one database. */
export const postgresAddresses = 40

/** The monitors of one kind are of one server type. */
export const typeOf = { http: 'App', tls: 'Qc', postgres: 'Sql' } as const satisfies Record<Kind, string>

export type Targets = {
  readonly mix: Mix
  readonly intervalMs: number
  readonly ports: { readonly http: number; readonly tls: number; readonly postgres: number }
  readonly caFile: string
  readonly passwordFile: string
}

/** The name that the certificate of the TLS servers is for. */
const serverName = 'svc.test'
/** Short, because a svc.yaml has at most 1 MiB, and never a number. */
const nameOf = (number: number): string => `m${pathOf(number)}`
/** The account of a monitor of PostgreSQL, by which the log of the server tells the monitors apart. */
export const accountOf = (number: number): string => `watch${number}`

const httpUrl = ({ ports }: Targets, number: number): string =>
  `http://${addressAt(blocks.http, number % httpAddresses)}:${ports.http}/${pathOf(number)}`
const tlsAddress = (number: number): string => addressAt(blocks.tls, number)
const postgresAddress = (number: number): string => addressAt(blocks.postgres, number % postgresAddresses)

const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, number) => number)

/** svc.yaml. Without a mix, the machine itself is not checked either. */
export function svcYaml(targets: Targets): string {
  const { mix, intervalMs, ports, caFile, passwordFile } = targets
  const entries: Record<Kind, (number: number) => string> = {
    http: (number) => `url: ${httpUrl(targets, number)}`,
    tls: (number) => `host: ${tlsAddress(number)},port: ${ports.tls},servername: ${serverName},caFile: ${caFile}`,
    postgres: (number) =>
      `url: postgres://${accountOf(number)}@${postgresAddress(number)}:${ports.postgres}/postgres,password: {file: ${passwordFile}}`,
  }
  const types = kinds.flatMap((kind) => [
    ...(mix[kind] === 0 ? [] : [` ${typeOf[kind]}:`, '  host: false', '  monitors:']),
    ...numbers(mix[kind]).map((number) => `  - {kind: ${kind},name: ${nameOf(number)},${entries[kind](number)}}`),
  ])
  return `serve: {every: {Standard: ${intervalMs}ms}}\ntypes:\n${types.join('\n')}\n`
}

/** When a monitor of svc is due: at this time of the grid, plus multiples of the interval. */
export const phaseOfMonitor = (kind: Kind, number: number, intervalMs: number): number =>
  phaseOf(writeKey({ type: typeOf[kind], kind, name: nameOf(number) }), 'Standard', intervalMs)

/** The modules of blackbox_exporter. It has none that signs in to PostgreSQL: there it connects. */
export const blackboxYaml = ({ caFile }: Pick<Targets, 'caFile'>): string => `modules:
  http_2xx: {prober: http, timeout: 5s, http: {preferred_ip_protocol: ip4}}
  tls_connect: {prober: tcp, timeout: 5s, tcp: {preferred_ip_protocol: ip4, tls: true, tls_config: {ca_file: ${caFile}, server_name: ${serverName}}}}
  tcp_connect: {prober: tcp, timeout: 5s, tcp: {preferred_ip_protocol: ip4}}
`

/** The configuration of Prometheus, which scrapes a blackbox_exporter for each of the same targets. */
export function prometheusYaml(targets: Targets, blackboxPort: number): string {
  const { mix, intervalMs, ports } = targets
  const addressOf: Record<Kind, (number: number) => string> = {
    http: (number) => httpUrl(targets, number),
    tls: (number) => `${tlsAddress(number)}:${ports.tls}`,
    postgres: (number) => `${postgresAddress(number)}:${ports.postgres}`,
  }
  const modules: Record<Kind, string> = { http: 'http_2xx', tls: 'tls_connect', postgres: 'tcp_connect' }
  const jobs = kinds.flatMap((kind) =>
    mix[kind] === 0
      ? []
      : [
          `  - job_name: ${kind}
    metrics_path: /probe
    params: {module: [${modules[kind]}]}
    relabel_configs:
      - {source_labels: [__address__], target_label: __param_target}
      - {source_labels: [__address__, number], target_label: instance}
      - {target_label: __address__, replacement: '127.0.0.1:${blackboxPort}'}
    static_configs:
${numbers(mix[kind])
  .map((number) => `      - {targets: ['${addressOf[kind](number)}'], labels: {number: '${number}'}}`)
  .join('\n')}
`,
        ],
  )
  return `global: {scrape_interval: ${intervalMs}ms, scrape_timeout: ${intervalMs}ms}\nscrape_configs:\n${jobs.join('')}`
}
