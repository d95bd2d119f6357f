/** Prometheus with blackbox_exporter, of the packages of Debian, as the schedule bench starts them. */
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type PrometheusServer, prometheusMissing, startPrometheus } from '../../test/support/servers/prometheus.ts'
import { findProgram, freePort, type Running, remove, run, serverFolder } from '../../test/support/servers/server.ts'
import { blackboxYaml, prometheusYaml, type Targets } from './monitors.ts'

const blackbox = findProgram('prometheus-blackbox-exporter') ?? findProgram('blackbox_exporter')
/** Why it cannot be measured here. */
export const peerMissing =
  prometheusMissing ?? (blackbox === undefined ? 'blackbox_exporter is not installed' : undefined)

export type BlackboxUnderPrometheus = {
  readonly pids: readonly number[]
  /** In the last seconds: scrapes that failed, and probes of those that did not. */
  readonly failures: (seconds: number) => Promise<{ readonly scrapes: number; readonly probes: number }>
  readonly stop: () => Promise<void>
}

export async function startBlackbox(targets: Targets): Promise<BlackboxUnderPrometheus> {
  const folder = serverFolder('blackbox')
  let [exporter, prometheus]: [Running | undefined, PrometheusServer | undefined] = [undefined, undefined]
  const stop = async (): Promise<void> => {
    await prometheus?.remove()
    await exporter?.stop('SIGTERM')
    remove(folder)
  }
  try {
    const port = await freePort()
    const file = join(folder, 'blackbox.yml')
    writeFileSync(file, blackboxYaml(targets))
    chmodSync(file, 0o644)
    const flags = [`--config.file=${file}`, `--web.listen-address=127.0.0.1:${port}`]
    exporter = await run(blackbox ?? '', flags, /Listening on/)
    prometheus = await startPrometheus({ 'prometheus.yml': prometheusYaml(targets, port) })
  } catch (error) {
    await stop()
    throw error
  }
  const sumOf = async (expression: string): Promise<number> => (await prometheus.query(expression))[0]?.value ?? 0
  return {
    pids: [exporter.pid, prometheus.pid],
    failures: async (seconds) => {
      const failuresOf = async (series: string): Promise<number> =>
        await sumOf(`sum(count_over_time(${series}[${seconds}s])) - sum(sum_over_time(${series}[${seconds}s]))`)
      return { scrapes: await failuresOf('up'), probes: await failuresOf('probe_success') }
    },
    stop,
  }
}
