import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import type { ExecutionMode } from '../../src/core/protocol/index.ts'
import { type RunTypesOptions, runType } from '../support/engine/run-types.ts'
import type { MountNamespace } from '../support/faults/mount-namespace.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { removed } from './removed.ts'
import { installsFolder } from './row.ts'

/** A server as it is installed by default, with the account that the reference documents. */
export type Install<Server = unknown> = {
  /** The server with its version, e.g. `PostgreSQL 15`. Names the suite and the row of the page. */
  readonly server: string
  /** The account and the settings of the monitor, as the page shows them. */
  readonly account: string
  /** Why it cannot be had here. */
  readonly missing: string | undefined
  readonly start: () => Promise<Server>
  /** By default, each of its servers is removed. */
  readonly stop?: (server: Server) => void | Promise<void>
  /** One monitor as svc.yaml declares it. */
  readonly monitor: (server: Server) => Readonly<Record<string, unknown>>
  readonly env?: Readonly<Record<string, string>>
  readonly context?: (server: Server) => Pick<RunTypesOptions, 'services'>
  /** Where the monitor runs, if not in the mounts of this machine. */
  readonly mounts?: (server: Server) => MountNamespace
}

/** One row of the table of default installs. */
export type InstallRecord = {
  readonly server: string
  readonly kind: string
  readonly account: string
  /** Why it was skipped. */
  readonly missing: string | undefined
  /** How many results each mode had. */
  readonly results: Readonly<Partial<Record<ExecutionMode, number>>>
  /** The results that were not ok. */
  readonly complaints: readonly string[]
}

const modes = ['Basic', 'Standard', 'Advanced'] as const
const folder = process.env.SVC_CORPUS_OUT

/** Runs the monitor in every mode. Every result must be ok. */
export function install<Server>({
  start,
  stop = removed,
  monitor,
  env = {},
  context,
  mounts,
  ...about
}: Install<Server>): void {
  const { server: name, account, missing } = about
  let kind = ''
  const results: Partial<Record<ExecutionMode, number>> = {}
  const complaints: string[] = []
  const record = (): void => {
    if (folder === undefined) return
    const made: InstallRecord = { server: name, kind, account, missing, results, complaints }
    mkdirSync(join(folder, installsFolder), { recursive: true })
    writeFileSync(join(folder, installsFolder, `${name.replaceAll(/\W+/g, '-')}.json`), JSON.stringify(made))
  }
  if (missing !== undefined) record()
  suiteWith(missing, name, () => {
    afterAll(record)
    test('without a warning in any mode', { timeout: 180_000 }, async () => {
      const server = await start()
      try {
        const settings = monitor(server)
        kind = String(settings['kind'])
        const yaml = JSON.stringify({ types: { App: { host: false, monitors: [settings] } } })
        for (const mode of modes) {
          const reports = mounts
            ? await mounts(server).run(yaml, mode, false)
            : await runType(yaml, 'App', mode, { env, ...context?.(server) })
          const all = reports.flatMap((report) => report.results)
          results[mode] = all.length
          for (const { check, status, message } of all) {
            if (status !== 'ok') complaints.push(`${mode}: ${check}: ${message}`)
          }
        }
        // Not every kind has a check in Basic.
        expect(results.Advanced).toBeGreaterThan(0)
        expect(complaints).toEqual([])
      } finally {
        await stop(server)
      }
    })
  })
}
