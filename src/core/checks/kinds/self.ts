import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { readText } from '../../base/files/index.ts'
import { ownAddresses } from '../../base/net/addresses.ts'
import { get } from '../../base/net/http/get.ts'
import { ProbeError } from '../../base/probe-error.ts'
import { isAlive } from '../../base/running-process.ts'
import type { SettingsSpec } from '../../base/settings/index.ts'
import { isMissing } from '../../base/system/files.ts'
import { startedAt } from '../../base/system/processes.ts'
import { markerBytes, markerPath, onThisMachine, parseMarker } from '../../base/system/serve-marker.ts'
import {
  atMost,
  type CheckContext,
  checksOn,
  deadlineSignal,
  fail,
  includes,
  machineKind,
  ObservationError,
  ok,
  warn,
} from '../engine/index.ts'

/** Milliseconds. A blocked loop delays every answer of `svc serve`. */
const delayThreshold = { warn: 200, limit: 1_000 }
const delayWindowMs = 500
/** The sampling interval of the delay, in milliseconds; measured values include it. */
const resolutionMs = 10
const answerMs = 3_000
/** A process that started this much later than the marker was written is a different one with the same id. */
const recycledMs = 5_000

/** The event loop is measured in parallel with the other checks, from the start of the run; not in Basic. */
type Self = { readonly since: number; readonly delays: ReturnType<typeof monitorEventLoopDelay> | undefined }
const check = checksOn<Self>()

export const version = check({
  depth: 'Basic',
  results: { version: 'Installed version of svc and version of Node; informational' },
  settings: { version: { type: 'text', required: true, doc: 'Installed version of svc' } },
  observe: () => Promise.resolve({ node: process.versions.node }),
  evaluate: ({ node }, { version: svc }) =>
    ok('version', `svc ${svc} on Node ${node}`, { facts: { version: svc, node } }),
})

const storePath = {
  type: 'text',
  doc: 'Store whose svc serve is checked',
} as const satisfies SettingsSpec[string]

/** The outcome for the svc serve of this store: its answer at a path, or why no request was sent. */
type Serve =
  | { readonly origin: string; readonly path: string; readonly status: number; readonly ms: number }
  | { readonly absent: true; readonly why?: string }
  | { readonly unusable: string }
  | { readonly ownOrigin: string }

export const serve = check({
  depth: 'Basic',
  results: { serve: 'If svc serve runs here for this store: /livez answers, and from Standard on /readyz' },
  settings: { storePath },
  async *observe(_, settings, context): AsyncGenerator<Serve> {
    const where = await locate(settings.storePath, context)
    if (!(where instanceof URL)) return yield where
    for (const path of includes(context.mode, 'Standard') ? ['/livez', '/readyz'] : ['/livez']) {
      context.step('serve')
      yield await answerOf(new URL(path, where), context)
    }
  },
  evaluate: (observation) => {
    if ('absent' in observation) {
      const why = observation.why === undefined ? '' : `: ${observation.why}`
      return ok('serve', `svc serve is not running for this store${why}`)
    }
    if ('unusable' in observation) return warn('serve', observation.unusable)
    if ('ownOrigin' in observation) {
      return ok('serve', `this process is the svc serve of this store, ${observation.ownOrigin}`)
    }
    const { origin, path, status, ms } = observation
    const address = new URL(origin).host
    const message = `${origin}${path} answered ${status}`
    return status >= 200 && status < 300
      ? ok('serve', message, { measurement: { value: ms, unit: 'milliseconds' }, address })
      : fail('serve', 'protocol', message, { address })
  },
})

/** The URL of the `svc serve` of a store, or the outcome if there is none. */
async function locate(store: string | undefined, context: CheckContext): Promise<URL | Serve> {
  if (store === undefined) return { absent: true }
  const path = markerPath(store)
  const file = await readText(context.files, path, markerBytes).catch((error: unknown) => {
    context.signal.throwIfAborted()
    return isMissing(error) ? undefined : null
  })
  if (file === undefined) return { absent: true }
  const marker = file === null ? undefined : parseMarker(file.text)
  if (!file || !marker) return { unusable: `${path} was not written by svc serve` }
  if (marker.pid === process.pid) return { ownOrigin: marker.url.origin }
  const began = await startedAt(marker.pid, context.date().getTime())
  const recycled = began !== undefined && began > file.status.modified + recycledMs
  if (recycled || !isAlive(marker.pid)) return { absent: true, why: `its process ${marker.pid} has exited` }
  const url = onThisMachine(marker.url, ownAddresses())
  return url ?? { unusable: `${path} names another machine, which is not queried` }
}

/** Checks only whether the server answers, and sends no secret: its certificate may be for a public name. */
async function answerOf(url: URL, context: CheckContext): Promise<Serve> {
  const { origin, pathname: path } = url
  const deadline = deadlineSignal(context.signal, answerMs)
  const { signal } = deadline
  const start = context.now()
  try {
    const { status } = await get(url, { signal, lookup: context.lookup, maxBytes: 65_536, anyCertificate: true })
    return { origin, path, status, ms: context.now() - start }
  } catch (error) {
    context.signal.throwIfAborted()
    const late = new ProbeError('timeout', `${origin}${path} did not answer within ${answerMs / 1_000} s`)
    throw new ObservationError(signal.aborted ? late : error, { address: origin })
  } finally {
    deadline.clear()
  }
}

export const eventLoop = check({
  depth: 'Standard',
  results: { 'event loop': 'The longest delay of the event loop during the check is within the limit' },
  observe: async ({ since, delays }, _, { now, signal }) => {
    const rest = Math.max(0, Math.ceil(delayWindowMs - (now() - since)) + 1)
    await pause(rest, undefined, { signal })
    return delays && { ms: Math.max(0, delays.max / 1e6 - resolutionMs) }
  },
  evaluate: (delay) =>
    delay
      ? atMost({
          check: 'event loop',
          what: 'longest delay',
          value: delay.ms,
          unit: 'duration',
          threshold: delayThreshold,
        })
      : [],
})

function open(_: object, { mode, now }: CheckContext): Self {
  const since = now()
  if (!includes(mode, 'Standard')) return { since, delays: undefined }
  const delays = monitorEventLoopDelay({ resolution: resolutionMs })
  delays.enable()
  return { since, delays }
}

/** This program. Stands in for an App server while none is configured. */
export default machineKind({
  name: 'self',
  title: 'svc itself and, if running, its svc serve',
  cost: { machine: 'It reads its own process.' },
  internal: true,
  open,
  close: ({ delays }) => void delays?.disable(),
  checks: [version, serve, eventLoop],
})
