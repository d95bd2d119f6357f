import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { hash, spreadMs } from '../../src/core/watch/schedule/due.ts'
import { type ServeSurroundings, startServeProcess } from '../support/program/serve-process.ts'
import type { Serving } from '../support/program/serving.ts'
import { until } from '../support/suite/until.ts'

/** Milliseconds that a test of the schedule may take: a busy machine needs this long for what takes a minute. */
export const maxMs = 400_000

/** A real web server that counts the runs of its monitors. */
export type ScheduledWeb = {
  readonly port: number
  readonly paths: readonly string[]
  /** The fewest and the most requests that any path has had since the last `reset`. */
  readonly fewest: () => number
  readonly most: () => number
  readonly reset: () => void
  /** Paths of which two requests were in progress at once, and both were answered. Empty where answers take no time. */
  readonly doubled: ReadonlySet<string>
}

/** Serves `count` paths on all addresses of loopback. Answers each request after `delayMs`. */
export async function startScheduledWeb(count: number, delayMs = 0): Promise<ScheduledWeb> {
  const paths = Array.from({ length: count }, (_, at) => `/m${at}`)
  const counts = new Map<string, number>()
  const open = new Map<string, ReadonlySet<ServerResponse>>()
  const doubled = new Set<string>()
  const server = createServer(async ({ url = '' }, response) => {
    counts.set(url, (counts.get(url) ?? 0) + 1)
    const others = open.get(url) ?? new Set()
    open.set(url, new Set([...others, response]))
    if (delayMs > 0) await pause(delayMs)
    open.set(url, new Set([...(open.get(url) ?? [])].filter((one) => one !== response)))
    // A run that has given up has closed its connection by now, and does not count as one in progress.
    if (response.destroyed) return
    response.end('ok')
    if ([...others].some(({ writableEnded }) => writableEnded)) doubled.add(url)
  }).listen(0, '0.0.0.0')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const all = (): readonly number[] => paths.map((path) => counts.get(path) ?? 0)
  return {
    port: (server.address() as AddressInfo).port,
    paths,
    fewest: () => Math.min(...all()),
    most: () => Math.max(...all()),
    reset: () => counts.clear(),
    doubled,
  }
}

/**
 * A name for a monitor whose first run is due soon after a server starts that this test is about to start. `everyMs`: the
 * shortest interval of the monitor. A start that takes longer costs a turn, and fails nothing.
 */
export function early(type: string, kind: string, everyMs = spreadMs): string {
  const turnMs = Math.min(everyMs, spreadMs)
  const share = ((Date.now() + 1_500) % turnMs) / turnMs
  for (let at = 0; ; at += 1) {
    const name = `n${at}`
    const after = hash(`${type}/${kind}/${name}`, 'first') / 2 ** 32 - share
    if (after >= 0 && after < 0.02) return name
  }
}

/** One monitor for each path, at an address of its own, as lines of svc.yaml. `more`: further settings of each. */
export const monitorsOf = ({ port, paths }: ScheduledWeb, more: string): string =>
  paths
    .map((path, at) => {
      const host = `127.2.${Math.floor(at / 250)}.${1 + (at % 250)}`
      return `    - {kind: http, name: ${path.slice(1)}, url: 'http://${host}:${port}${path}', ${more}}\n`
    })
    .join('')

/**
 * How many times at most a monitor runs within `ms`, however late its runs are: each serves a due time of its own. One
 * more than the intervals because both ends can be due times, and one for the first run, which has a time of its own.
 */
export const mostRuns = (ms: number, everyMs: number): number => Math.floor(ms / everyMs) + 2

export const metricsOf = async ({ port }: Serving): Promise<string> =>
  await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()

/** The samples of checks that failed, were skipped or not checked. */
export const badChecks = (metrics: string): readonly string[] =>
  metrics
    .split('\n')
    .filter((line) => /^svc_check_success\{.* 0$/.test(line) || /^svc_check_(?:not_checked|skipped)\{.* 1$/.test(line))

/** How late the schedule says that it was, in seconds, at its latest depth. */
export function latenessIn(metrics: string): number {
  const seconds = [...metrics.matchAll(/^svc_schedule_lateness_seconds\{.*\} (\S+)$/gm)].map(([, value]) =>
    Number(value),
  )
  expect(seconds.length).toBeGreaterThan(0)
  return Math.max(...seconds)
}

const everyMs = 20_000
/** With those that fail they are a thousand. */
const healthyCount = 760

/**
 * Starts svc with 760 healthy monitors beside these, and waits until each of them has run three times. `within`: the
 * command that starts svc elsewhere.
 */
export async function othersStayOnTime(sick: readonly string[], within?: ServeSurroundings['within']): Promise<void> {
  const web = await startScheduledWeb(healthyCount)
  const yaml = `serve: {every: {Standard: ${everyMs / 1_000}s, Advanced: off}}
types:
  App:
${monitorsOf(web, 'timeout: 10s')}  Batch:
${sick.map((line) => `    - ${line}\n`).join('')}`
  const startedAt = performance.now()
  await using serve = await startServeProcess(yaml, [], undefined, within ? { within } : {})
  await until(() => web.fewest() >= 3, maxMs, 500)
  expect(web.most()).toBeLessThanOrEqual(mostRuns(performance.now() - startedAt, everyMs))
  // Each has had its turn as often as every other one, give or take those of the first and the last interval.
  expect(web.most() - web.fewest()).toBeLessThanOrEqual(2)
  const metrics = await metricsOf(serve)
  // No run, also none of those that fail, began a whole interval late.
  expect(latenessIn(metrics)).toBeLessThan(everyMs / 1_000)
  expect(metrics.match(/^svc_check_success\{type="App".* 1$/gm)?.length).toBeGreaterThanOrEqual(healthyCount)
  const bad = badChecks(metrics)
  expect(bad.filter((line) => line.includes('type="App"'))).toEqual([])
  expect(bad.filter((line) => line.includes('type="Batch"')).length).toBeGreaterThanOrEqual(sick.length)
  // They failed at their peers, and none for lack of a turn.
  expect(bad.filter((line) => line.startsWith('svc_check_not_checked'))).toEqual([])
}

/** A peer that counts its connections, and says something to each. */
export async function countingPeer(): Promise<{ readonly port: number; readonly count: () => number }> {
  let count = 0
  const server = createTcpServer((socket) => {
    count += 1
    socket.on('error', () => {}).end('hello\r\n')
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return { port: (server.address() as { port: number }).port, count: () => count }
}
