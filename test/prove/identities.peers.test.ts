import { afterAll, describe, expect, test } from 'vitest'
import { resolveHost } from '../../src/core/base/net/connect.ts'
import { readSettings } from '../../src/core/base/settings/index.ts'
import { runInChild } from '../../src/core/checks/child/index.ts'
import { type EngineContext, limits, type PlannedMonitor, runMonitors } from '../../src/core/checks/engine/index.ts'
import { hostKind, loadKind } from '../../src/core/checks/plan/index.ts'
import { healthCheckResponse } from '../../src/core/checks/reports/index.ts'
import { kindProblem, readMonitor } from '../../src/core/config/monitors.ts'
import type { ExecutionMode } from '../../src/core/protocol/index.ts'
import { openData } from '../../src/core/store/index.ts'
import { xmlElements } from '../checks/reports/grammar.ts'
import { render } from '../checks/reports/render.ts'
import { document } from '../checks/reports/runs.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { refusedAt, removeCertificates, type Started } from './leak-row.ts'
import { rows } from './leak-rows.ts'

afterAll(removeCertificates)

type Settings = Readonly<Record<string, unknown>>

/** The same settings, with a port at which nothing listens, a path at which nothing is, an agent that never reported. */
function astray(settings: Settings): Settings {
  const move = (key: string, value: unknown): unknown => {
    if (key === 'port') return refusedAt
    if (key === 'url' || key === 'issuer') return String(value).replace(/:\d+/, `:${refusedAt}`)
    if (key === 'agents') return ['never']
    return key === 'path' || key === 'command' || key === 'folder' ? `${value}-none` : value
  }
  return Object.fromEntries(Object.entries(settings).map(([key, value]) => [key, move(key, value)]))
}

const ofHost = { depth: 'Basic', host: true, dependsOn: [], retries: 0, deployment: false } as const

async function planned(kind: string, settings: Settings, { env = {} }: Started): Promise<PlannedMonitor> {
  const context = { env, folder: '/' }
  if (kind === hostKind) {
    const loaded = await loadKind(hostKind)
    return { ...ofHost, name: kind, kind: loaded, settings: readSettings(loaded.settings, settings, context).values }
  }
  const { monitor, problems } = await readMonitor({ kind, name: 'one', ...settings }, context, kindProblem)
  if (!monitor) throw new Error(JSON.stringify(problems))
  return { ...monitor, type: 'App' }
}

/** The test cases of the last monitor of a plan, in JUnit: `classname name`, and what became of each. */
async function casesOf(plan: readonly PlannedMonitor[], context: EngineContext, mode: ExecutionMode) {
  const run = await runMonitors(plan, context, { mode, signal: new AbortController().signal })
  const of = document({ ...run, monitors: run.monitors.slice(-1) }, { type: 'App' })
  const answer = { Target: 't', ServerType: 'App', ExecutionMode: mode, ExitCode: 0 }
  const text = await render('junit', [{ ...answer, Run: of, Response: healthCheckResponse(of) }])
  const outcomes = new Map<string, string>()
  let last = ''
  for (const { name, attributes } of xmlElements(text)) {
    if (name === 'testcase') {
      last = `${attributes['classname']} ${attributes['name']}`
      expect(outcomes).not.toContain(last)
      outcomes.set(last, 'passed')
    } else if (['failure', 'error', 'skipped'].includes(name)) outcomes.set(last, `${name}: ${attributes['message']}`)
  }
  return outcomes
}

/** Their settings cannot be led astray in this way: they are proved healthy and not run. */
const noneAstray: readonly string[] = ['dns', 'domain', 'host', 'mail-queue', 'ping', 'process']

/** The checks of which only the other side knows the items. */
const discovered: Readonly<Record<string, string>> = { svc: 'remote check' }

describe.concurrent('F5 a test case of JUnit has the same identity whatever becomes of the monitor', () => {
  for (const [kind, row] of Object.entries(rows)) {
    peerSuite(row.missing, kind, () => {
      test(`F5 ${kind}: healthy, failed at its first check, and not run`, { timeout: 120_000 }, async () => {
        const started = await row.start()
        const data = started.store === undefined ? undefined : await openData({ store: started.store, create: false })
        const context: EngineContext = {
          now: () => performance.now(),
          date: () => new Date(),
          resolve: resolveHost,
          inChild: runInChild,
          measureState: () => () => ({}),
          limits: limits(),
          services: { exec: { allow: started.allow ?? [] }, heartbeats: data && (() => data.heartbeats.list()) },
        }
        try {
          const [well] = started.cases
          if (!well) throw new Error('the row has no case')
          const parent = await planned('tcp', { host: '127.0.0.1', port: refusedAt, name: 'parent' }, started)
          for (const mode of well.modes) {
            const healthy = await planned(kind, well.settings, started)
            const lost = await planned(kind, astray(well.settings), started)
            const outcomes = await casesOf([healthy], context, mode)
            const failed = await casesOf([lost], { ...context, limits: limits() }, mode)
            const identities = (all: typeof failed): readonly string[] =>
              [...all.keys()].filter((name) => !name.includes(discovered[kind] ?? '\0')).toSorted()
            expect(identities(outcomes).length).toBeGreaterThan(0)
            expect(identities(failed)).toEqual(identities(outcomes))
            const hasFailed = [...failed.values()].some((outcome) => outcome.startsWith('failure'))
            expect(hasFailed).toBe(!noneAstray.includes(kind))
            if (kind === hostKind) continue
            const notRun = await casesOf([parent, { ...healthy, dependsOn: [parent.name] }], context, mode)
            expect(identities(notRun)).toEqual(identities(outcomes))
            // Nothing else of this report failed, and a report without a failure or an error is green.
            const [first, ...others] = notRun.values()
            expect(first).toMatch(/^error: not run: /)
            for (const outcome of others) expect(outcome).toMatch(/^skipped: not run: /)
          }
        } finally {
          await data?.close()
          await started.breaks?.stop()
          await started.stop()
        }
      })
    })
  }
})
