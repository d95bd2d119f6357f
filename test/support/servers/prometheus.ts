import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findProgram, freePort, type Running, remove, run, serverFolder } from './server.ts'

const daemon = findProgram('prometheus')
const tool = findProgram('promtool')
export const promtoolMissing = tool === undefined ? 'promtool is not installed' : undefined
export const prometheusMissing = daemon === undefined ? 'Prometheus is not installed' : promtoolMissing

/** Runs promtool, which reads `input`. */
export const promtool = (args: readonly string[], input = '', folder = '/') =>
  spawnSync(tool ?? '', args, { cwd: folder, input, encoding: 'utf8' })

/** The files for Prometheus that svc ships. */
export const shippedFolder = fileURLToPath(new URL('../../../deploy/prometheus', import.meta.url))
const shippedFile = (name: string): string => readFileSync(join(shippedFolder, name), 'utf8')

/** The shipped files, for these targets in YAML, scraped and judged once a second. */
export const shippedForPrometheus = (targets: string): Readonly<Record<string, string>> => ({
  'prometheus.yml': shippedFile('prometheus.yml')
    .replaceAll("'127.0.0.1:8790'", targets)
    .replace('scrape_interval: 30s', 'scrape_interval: 1s')
    .replace('evaluation_interval: 15s', 'evaluation_interval: 1s'),
  'svc-rules.yml': shippedFile('svc-rules.yml'),
})

type Alert = {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly state: 'pending' | 'firing' | 'inactive'
}
type Series = { readonly labels: Readonly<Record<string, string>>; readonly value: number }

export type PrometheusServer = Running & {
  /** The instant value of an expression. */
  readonly query: (expression: string) => Promise<readonly Series[]>
  readonly alerts: () => Promise<readonly Alert[]>
  /** The error of the last scrape of each target: empty where the scrape succeeded. */
  readonly scrapeErrors: () => Promise<readonly string[]>
  /** Ends it and removes its data. */
  readonly remove: () => Promise<void>
}

/** A real Prometheus on a free port of 127.0.0.1. `files` are its configuration, `prometheus.yml` first of all. */
export async function startPrometheus(files: Readonly<Record<string, string>>): Promise<PrometheusServer> {
  const folder = serverFolder('prometheus')
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o644 })
  const port = await freePort()
  const running = await run(
    daemon ?? '',
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    /Server is ready to receive web requests/,
  )
  const ask = async (path: string): Promise<unknown> => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`)
    const { status, data } = (await response.json()) as { readonly status: string; readonly data: unknown }
    if (status !== 'success') throw new Error(`Prometheus refused ${path}`)
    return data
  }
  return {
    ...running,
    query: async (expression) => {
      const data = (await ask(`query?query=${encodeURIComponent(expression)}`)) as {
        readonly result: readonly {
          readonly metric: Readonly<Record<string, string>>
          readonly value: readonly [number, string]
        }[]
      }
      return data.result.map(({ metric, value: [, text] }) => ({ labels: metric, value: Number(text) }))
    },
    alerts: async () => ((await ask('alerts')) as { readonly alerts: readonly Alert[] }).alerts,
    scrapeErrors: async () => {
      const { activeTargets } = (await ask('targets')) as { readonly activeTargets: readonly { lastError: string }[] }
      return activeTargets.map(({ lastError }) => lastError)
    },
    remove: async () => {
      await running.stop()
      remove(folder)
    },
  }
}
