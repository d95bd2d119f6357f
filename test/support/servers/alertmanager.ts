import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram, freePort, type Running, remove, run, serverFolder } from './server.ts'

const program = findProgram('prometheus-alertmanager') ?? findProgram('alertmanager')
export const alertmanagerMissing =
  program === undefined ? 'Alertmanager (prometheus-alertmanager) is not installed' : undefined

/** An alert as the API v2 shows it. */
export type ShownAlert = {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly startsAt: string
  readonly endsAt: string
  readonly status: { readonly state: 'active' | 'suppressed' | 'unprocessed' }
}

export type AlertmanagerServer = {
  readonly url: string
  /** Its port of the cluster. */
  readonly peer: string
  /** The alerts that fire. */
  readonly alerts: () => Promise<readonly ShownAlert[]>
  /** The sum of a counter of /metrics. */
  readonly metric: (name: string) => Promise<number>
  /** Ends it and keeps its data. */
  readonly stop: () => Promise<void>
  /** Starts it again, at the same port and with its data. */
  readonly restart: () => Promise<void>
  readonly remove: () => Promise<void>
}

/** A real Alertmanager on a free port of 127.0.0.1, in a cluster with `peers`. `web` is its web configuration. */
export async function startAlertmanager(
  config: string,
  { peers = [], web }: { readonly peers?: readonly AlertmanagerServer[]; readonly web?: string } = {},
): Promise<AlertmanagerServer> {
  const folder = serverFolder('alertmanager')
  const [port, clusterPort] = [await freePort(), await freePort()]
  writeFileSync(join(folder, 'alertmanager.yml'), config, { mode: 0o644 })
  if (web !== undefined) writeFileSync(join(folder, 'web.yml'), web, { mode: 0o644 })
  const args = [
    `--config.file=${join(folder, 'alertmanager.yml')}`,
    `--storage.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    ...(web === undefined ? [] : [`--web.config.file=${join(folder, 'web.yml')}`]),
    `--cluster.listen-address=127.0.0.1:${clusterPort}`,
    ...peers.map(({ peer }) => `--cluster.peer=${peer}`),
    // It waits for its peers, and before another instance sends what it has sent itself.
    '--cluster.settle-timeout=1s',
    '--cluster.peer-timeout=2s',
  ]
  const start = (): Promise<Running> => run(program ?? '', args, /msg="?Listening on"?/i)
  let running = await start()
  const url = `${web === undefined ? 'http' : 'https'}://127.0.0.1:${port}`
  return {
    url,
    peer: `127.0.0.1:${clusterPort}`,
    alerts: async () => (await (await fetch(`${url}/api/v2/alerts`)).json()) as readonly ShownAlert[],
    metric: async (name) => {
      const text = await (await fetch(`${url}/metrics`)).text()
      const samples = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
      return samples.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
    },
    stop: () => running.stop('SIGTERM'),
    restart: async () => {
      running = await start()
    },
    remove: async () => {
      await running.stop('SIGTERM')
      remove(folder)
    },
  }
}
