import { rmSync, writeFileSync } from 'node:fs'
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
  readonly status: {
    readonly state: 'active' | 'suppressed' | 'unprocessed'
    /** The ids of silences. */
    readonly silencedBy: readonly string[]
  }
}

/** A silence as the API v2 shows it. */
export type ShownSilence = {
  readonly id: string
  readonly status: { readonly state: 'active' | 'pending' | 'expired' }
  readonly matchers: readonly {
    readonly name: string
    readonly value: string
    readonly isRegex: boolean
    readonly isEqual: boolean
  }[]
  readonly startsAt: string
  readonly endsAt: string
  readonly updatedAt: string
  readonly createdBy: string
  readonly comment: string
}

export type AlertmanagerServer = {
  readonly url: string
  /** Its port of the cluster. */
  readonly peer: string
  /** The alerts that fire. */
  readonly alerts: () => Promise<readonly ShownAlert[]>
  /** All silences, those that are over included. */
  readonly silences: () => Promise<readonly ShownSilence[]>
  /** Creates a silence, or changes the one with this id, as a person does in its page. Returns the id. */
  readonly postSilence: (silence: Omit<Partial<ShownSilence>, 'status' | 'updatedAt'>) => Promise<string>
  /** The button Expire of its page. */
  readonly expireSilence: (id: string) => Promise<void>
  /** The sum of a counter of /metrics. */
  readonly metric: (name: string) => Promise<number>
  /** Ends it and keeps its data. */
  readonly stop: () => Promise<void>
  /** Starts it again, at the same port and with its data; `peers`: in a cluster with these. */
  readonly restart: (peers?: readonly AlertmanagerServer[]) => Promise<void>
  /** Removes its data, while it is stopped. */
  readonly forget: () => void
  readonly remove: () => Promise<void>
}

/** A real Alertmanager on a free port of 127.0.0.1, in a cluster with `peers`, or without clustering. `web` is its web configuration. */
export async function startAlertmanager(
  config: string,
  {
    peers = [],
    web,
    isClustered = true,
  }: { readonly peers?: readonly AlertmanagerServer[]; readonly web?: string; readonly isClustered?: boolean } = {},
): Promise<AlertmanagerServer> {
  const folder = serverFolder('alertmanager')
  const [port, clusterPort] = [await freePort(), await freePort()]
  writeFileSync(join(folder, 'alertmanager.yml'), config, { mode: 0o644 })
  if (web !== undefined) writeFileSync(join(folder, 'web.yml'), web, { mode: 0o644 })
  const args = (others: readonly AlertmanagerServer[]): readonly string[] => [
    `--config.file=${join(folder, 'alertmanager.yml')}`,
    `--storage.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    ...(web === undefined ? [] : [`--web.config.file=${join(folder, 'web.yml')}`]),
    `--cluster.listen-address=${isClustered ? `127.0.0.1:${clusterPort}` : ''}`,
    ...others.map(({ peer }) => `--cluster.peer=${peer}`),
    // It waits for its peers, and before another instance sends what it has sent itself.
    '--cluster.settle-timeout=1s',
    '--cluster.peer-timeout=2s',
  ]
  const start = (others: readonly AlertmanagerServer[]): Promise<Running> =>
    run(program ?? '', args(others), /msg="?Listening on"?/i)
  let running = await start(peers)
  const url = `${web === undefined ? 'http' : 'https'}://127.0.0.1:${port}`
  return {
    url,
    peer: `127.0.0.1:${clusterPort}`,
    alerts: async () => (await (await fetch(`${url}/api/v2/alerts`)).json()) as readonly ShownAlert[],
    silences: async () => (await (await fetch(`${url}/api/v2/silences`)).json()) as readonly ShownSilence[],
    postSilence: async (silence) => {
      const headers = { 'content-type': 'application/json' }
      const answer = await fetch(`${url}/api/v2/silences`, { method: 'POST', headers, body: JSON.stringify(silence) })
      if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`)
      return ((await answer.json()) as { readonly silenceID: string }).silenceID
    },
    expireSilence: async (id) => {
      const answer = await fetch(`${url}/api/v2/silence/${id}`, { method: 'DELETE' })
      if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`)
    },
    metric: async (name) => {
      const text = await (await fetch(`${url}/metrics`)).text()
      const samples = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
      return samples.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
    },
    stop: () => running.stop('SIGTERM'),
    restart: async (others = peers) => {
      running = await start(others)
    },
    forget: () => rmSync(join(folder, 'data'), { recursive: true }),
    remove: async () => {
      await running.stop('SIGTERM')
      remove(folder)
    },
  }
}
