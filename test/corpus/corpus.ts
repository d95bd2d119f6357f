import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { MonitorReport } from '../../src/core/checks/engine/index.ts'
import type { ExecutionMode } from '../../src/core/protocol/index.ts'
import { type RunTypesOptions, runType } from '../support/engine/run-types.ts'
import type { MountNamespace } from '../support/faults/mount-namespace.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { askPeer, type PeerVerdict } from './peers.ts'
import { removed } from './removed.ts'
import { assess, type Expected, type FirstRun, headline, negated, type Row, type Verdict } from './row.ts'

export type Group<Server> = {
  /** The real server with its version, e.g. `PostgreSQL 15.18`. Names the suite and the section of the page. */
  readonly server: string
  /** Why it cannot run here, e.g. `pgbouncer is not installed`. */
  readonly missing: string | undefined
  readonly start: () => Promise<Server>
  /** By default, each of its servers is removed. */
  readonly stop?: (server: Server) => void | Promise<void>
  readonly rows: readonly Row<Server>[]
  /** Environment variables that `{env: NAME}` refers to, for rows that have none of their own. */
  readonly env?: Row<Server>['env']
  /** Where the monitors and the other programs run, if not in the mounts of this machine. */
  readonly mounts?: (server: Server) => MountNamespace
  /** The context of svc besides its configuration: the programs that it may run, its store. */
  readonly context?: (server: Server) => Pick<RunTypesOptions, 'services'>
}

/** One row as the page prints it. */
export type RowRecord = {
  readonly server: string
  readonly fault: string
  readonly mode: ExecutionMode
  readonly kind: string
  /** The check that the row expects to report the fault. */
  readonly check: string | undefined
  readonly expected: string
  readonly verdict: Verdict
  readonly first: string
  readonly before: string | undefined
  readonly blind: FirstRun | undefined
  readonly invisible: string | undefined
  /** The reply to a plain client while the fault was planted. */
  readonly client: string | undefined
  readonly peers: readonly PeerVerdict[]
  /** Kind and result name of everything that the run reported. */
  readonly hits: readonly string[]
}

/** Where `npm run corpus` collects the rows for the page. */
const folder = process.env.SVC_CORPUS_OUT

/**
 * Plants each fault of a group on its real server, runs the monitor on it, and compares. Then negates every check that
 * was hit, one after the other: at least one row must notice.
 */
export function corpus<Server>(group: Group<Server>): void {
  const { server: name, missing, start, stop = removed, rows } = group
  suiteWith(missing, `corpus: ${name}`, () => {
    let server: Server | undefined
    const records: RowRecord[] = []
    const reports: { readonly row: Row<Server>; readonly report: MonitorReport }[] = []
    beforeAll(async () => {
      server = await start()
    }, 180_000)
    afterAll(async () => {
      if (server !== undefined) await stop(server)
      if (folder === undefined) return
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, `${name.replaceAll(/\W+/g, '-')}.json`), JSON.stringify(records, undefined, 2))
    })
    test.each(rows.map((row) => [`${row.fault}: ${sentence(row)}`, row] as const))(
      '%s',
      { timeout: 120_000 },
      async (_title, row) => {
        if (server === undefined) throw new Error('the server is not running')
        const cure = await row.plant?.(server)
        try {
          const client = await row.client?.asks(server)
          if (row.client) expect(client).toMatch(row.client.gets)
          const problems: Partial<Record<ExecutionMode, readonly string[]>> = {}
          for (const one of depthsOf(row)) {
            const { mode = 'Advanced', expected } = one
            const report = await reportOf(group, one, server)
            const mounts = group.mounts?.(server)
            // Only the page shows what they say.
            const peers =
              folder === undefined ? [] : await inTurn(row.peers?.(server) ?? [], (peer) => askPeer(peer, mounts))
            const verdict = assess(expected, report)
            const first = headline(report.results)
            reports.push({ row: one, report })
            records.push({
              server: name,
              fault: row.fault,
              mode,
              kind: report.kind,
              check: expected.state === 'healthy' ? undefined : expected.check,
              expected: sentence(one),
              verdict,
              first: first ? `${first.check}: ${first.message}` : `${report.results.length} checks ok`,
              before: row.before,
              blind: row.blind,
              invisible: row.invisible,
              client: client?.slice(0, 160),
              peers,
              hits: [...new Set(report.results.map(({ check }) => `${report.kind} ${check}`))],
            })
            if (verdict.problems.length > 0) problems[mode] = verdict.problems
          }
          expect(problems).toEqual({})
        } finally {
          await cure?.()
        }
      },
    )
    // Rows that expect a state alone, whatever the check, cannot notice each check.
    const unwell = rows.flatMap(({ expected }) => (expected.state === 'healthy' ? [] : [expected]))
    if (unwell.length > 0 && unwell.every(({ check }) => check === undefined)) return
    test('a negated check is noticed by at least one row', () => {
      // What is nowhere checked has no verdict to negate.
      const verdicts = reports.flatMap(({ report }) => report.results.filter((one) => one.notChecked === undefined))
      const checks = new Set(verdicts.map(({ check }) => check))
      const unnoticed = [...checks].filter((check) =>
        reports.every(({ row, report }) => assess(row.expected, negated(report, check)).problems.length === 0),
      )
      expect(unnoticed).toEqual([])
    })
  })
}

/** A row for each mode that it is judged in, the shallowest first. */
const depthsOf = <Server>(row: Row<Server>): readonly Row<Server>[] => {
  const { shallower } = row
  if (shallower === undefined) return [row]
  return [
    ...(['Basic', 'Standard'] as const).flatMap((mode) => {
      const expected = shallower[mode]
      return expected === undefined ? [] : [{ ...row, mode, expected }]
    }),
    { ...row, mode: 'Advanced' },
  ]
}

async function reportOf<Server>(
  { mounts, context, env: common = {} }: Group<Server>,
  { monitor, mode = 'Advanced', env = common, history, now }: Row<Server>,
  server: Server,
): Promise<MonitorReport> {
  const { kind, ...settings } = monitor(server)
  const host = kind === 'host'
  const yaml = JSON.stringify({ types: { App: host ? { host: settings } : [{ kind, ...settings }] } })
  const [report] = mounts
    ? await mounts(server).run(yaml, mode, host)
    : await runType(yaml, 'App', mode, { env, host, history, now, ...context?.(server) })
  if (!report) throw new Error('no monitor ran')
  return report
}

const sentence = ({ expected }: { readonly expected: Expected }): string =>
  expected.state === 'healthy'
    ? 'healthy'
    : `${expected.state}${expected.fault === undefined ? '' : ` (${expected.fault})`}${expected.check === undefined ? '' : `, ${expected.check}`}`

async function inTurn<In, Out>(all: readonly In[], one: (each: In) => Promise<Out>): Promise<readonly Out[]> {
  const done: Out[] = []
  for (const each of all) done.push(await one(each))
  return done
}
