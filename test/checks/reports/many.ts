import { type Entry, healthCheckResponse } from '../../../src/core/checks/reports/index.ts'
import { type RunDocument, ServerType } from '../../../src/core/protocol/index.ts'

type Monitor = RunDocument['monitors'][number]
type Result = Monitor['results'][number]

/** A run of one type on this machine. */
export function runOf(type: string, monitors: readonly Monitor[], exitCode: number): Entry {
  const failed = monitors.filter(({ status }) => status === 'failed').length
  const warned = monitors.some(({ status }) => status === 'warning')
  const run: RunDocument = {
    version: 1,
    type: ServerType.values.find((value) => value === type) ?? 'App',
    mode: 'Standard',
    view: 'full',
    status: failed > 0 ? 'failed' : warned ? 'warning' : 'ok',
    message:
      failed > 0 ? `${type} is unhealthy: ${failed} of ${monitors.length} monitors failed` : `${type} is healthy`,
    correlationId: '7f3c2a9e-41d0-4c1b-9a57-0d6f3f1f2b11',
    startedAt: new Date('2026-03-01T03:00:00.000Z'),
    endedAt: new Date('2026-03-01T03:00:03.000Z'),
    durationMs: 3_000,
    monitors,
  }
  const Response = healthCheckResponse(run)
  return { Target: 'web1', ServerType: type, ExecutionMode: 'Standard', ExitCode: exitCode, Response, Run: run }
}

/** A monitor of a run, with the worst status of its results. */
export const monitor = (name: string, results: readonly Result[], more: Partial<Monitor> = {}): Monitor => ({
  scope: 'network',
  depth: 'Basic',
  host: false,
  durationMs: 4,
  attempts: 1,
  kind: name.split(' ')[0] ?? name,
  name,
  status: results.some(({ status }) => status === 'failed')
    ? 'failed'
    : results.some(({ status }) => status === 'warning')
      ? 'warning'
      : 'ok',
  results,
  ...more,
})

const connect: Result = { check: 'connect', status: 'ok', message: '3 ms' }

/** `count` healthy monitors, each with a figure. */
export const wellOnes = (count: number, prefix = 'http shop'): readonly Monitor[] =>
  Array.from({ length: count }, (_, at) =>
    monitor(`${prefix}-${at + 1}`, [
      connect,
      { check: 'latency', status: 'ok', message: '12 ms', measurement: { value: 12, unit: 'milliseconds' } },
    ]),
  )

export const refusing = (name: string, address = '10.0.0.7:9100'): Monitor =>
  monitor(name, [
    {
      check: 'connect',
      status: 'failed',
      fault: 'refused',
      message: `${address} refused the connection in 1 ms: host up, nothing listens on that port`,
    },
  ])

/** It fails, and beside that it has a warning, a healthy check and one that was skipped. */
export const failingWithMore = (name: string): Monitor =>
  monitor(name, [
    connect,
    { check: 'connections', status: 'warning', message: '85 % (warn 80 %, fail 95 %)' },
    { check: 'replication lag', status: 'failed', fault: 'threshold', message: '12 s (warn 5 s, fail 10 s)' },
    { check: 'slots', status: 'failed', fault: 'dependency', cause: 'replication lag', message: 'not run: no replica' },
  ])

export const warned = (name: string): Monitor =>
  monitor(name, [connect, { check: 'certificate', status: 'warning', message: 'expires in 12 d (warn below 20 d)' }])

/** It had no place before the run ended. */
export const starved = (name: string, seconds: number): Monitor =>
  monitor(name, [
    {
      check: 'not run',
      status: 'failed',
      fault: 'timeout',
      notChecked: 'starved',
      message: `not checked: waited ${seconds} s for http slow-1, http slow-2 (4 monitors at a time per host)`,
    },
  ])

export const skipped = (name: string, cause: string): Monitor =>
  monitor(name, [
    { check: 'not run', status: 'failed', fault: 'dependency', cause, message: `not run: ${cause} failed` },
  ])

/** The block of checks of the machine, which every type repeats. */
export const machine = (...levels: readonly Result['status'][]): Monitor =>
  monitor(
    'host',
    levels.map((status, at) => ({
      check: ['disk /var', 'load', 'memory'][at] ?? 'cpu',
      status,
      message: ['85 % used (warn 80 %, fail 95 %)', '4.4 per CPU (warn 2)', '3 % free (fail 5 %)'][at] ?? '40 %',
      ...(status === 'failed' ? { fault: 'threshold' as const } : {}),
    })),
    { scope: 'machine', host: true },
  )
