import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram, freePort, type Running, remove, run, serverFolder } from './server.ts'

const daemon = findProgram('prometheus')
const tool = findProgram('promtool')
export const promtoolMissing = tool === undefined ? 'promtool is not installed' : undefined
export const prometheusMissing = daemon === undefined ? 'Prometheus is not installed' : promtoolMissing

/** Runs promtool, which reads `input`. */
export const promtool = (args: readonly string[], input = '', folder = '/') =>
  spawnSync(tool ?? '', args, { cwd: folder, input, encoding: 'utf8' })

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
