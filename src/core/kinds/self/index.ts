import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import {
  atMost,
  type Broken,
  type CheckContext,
  deadlineSignal,
  evaluateBroken,
  fail,
  includes,
  monitorKind,
  ok,
  part,
  type Result,
  warn,
} from '../../engine/index.ts'
import { get } from '../../net/http/get.ts'
import { ProbeError } from '../../probe-error.ts'
import { isMissing, readSmallFile } from '../../system/files.ts'
import { isAlive, startedAt } from '../../system/processes.ts'
import { markerBytes, markerPath, onThisMachine, ownAddresses, parseMarker } from '../../system/serve-marker.ts'

/** Milliseconds. A blocked loop delays every answer of `svc serve`. */
const delayThreshold = { warn: 200, limit: 1_000 }
const delayWindowMs = 500
/** How often the delay is sampled; what is measured includes it. */
const resolutionMs = 10
const answerMs = 3_000
/** A process that began so much later than the marker was written is another one with the same id. */
const recycledMs = 5_000

export type SelfSeen =
  | { readonly see: 'version'; readonly svc: string; readonly node: string }
  | { readonly see: 'delay'; readonly ms: number }
  | { readonly see: 'no serve'; readonly why?: string | undefined }
  | { readonly see: 'bad marker'; readonly why: string }
  | { readonly see: 'own process'; readonly origin: string }
  | {
      readonly see: 'serve'
      readonly origin: string
      readonly path: string
      readonly status: number
      readonly ms: number
    }
  | Broken

/** This program: what stands for an App server while none is configured. */
export default monitorKind({
  name: 'self',
  title: 'This program and, where one runs, its svc serve',
  settings: {
    version: { type: 'text', required: true, doc: 'The installed version' },
    storePath: { type: 'text', doc: 'The store whose svc serve is looked for' },
  },
  checks: [
    { name: 'version', depth: 'Basic', doc: 'Installed version and Node version; informational' },
    {
      name: 'serve',
      depth: 'Basic',
      doc: 'Where a svc serve of this store runs here, /livez answers; from Standard on /readyz too',
    },
    { name: 'event loop', depth: 'Standard', doc: 'Longest delay of the event loop during the check' },
  ],
  internal: true,
  async *observe(settings, context): AsyncGenerator<SelfSeen> {
    const standard = includes(context.mode, 'Standard')
    const started = context.now()
    const delays = standard ? monitorEventLoopDelay({ resolution: resolutionMs }) : undefined
    delays?.enable()
    try {
      context.step('version')
      yield { see: 'version', svc: settings.version, node: process.versions.node }
      context.step('serve')
      yield* lookAtServe(settings.storePath, context, standard ? ['/livez', '/readyz'] : ['/livez'])
      if (!delays) return
      context.step('event loop')
      await pause(Math.max(0, Math.ceil(delayWindowMs - (context.now() - started)) + 1), undefined, {
        signal: context.signal,
      })
      yield { see: 'delay', ms: Math.max(0, delays.max / 1e6 - resolutionMs) }
    } finally {
      delays?.disable()
    }
  },
  evaluate: evaluateSelf,
})

async function* lookAtServe(
  storePath: string | undefined,
  context: CheckContext,
  paths: readonly string[],
): AsyncGenerator<SelfSeen> {
  const where = storePath === undefined ? undefined : await whereItAnswers(storePath, context)
  if (where === undefined) return yield { see: 'no serve' }
  if (!(where instanceof URL)) return yield where
  const { origin } = where
  for (const path of paths) {
    const seen = await part('serve', context, () => ask(new URL(path, where), context), origin)
    yield seen
    if (seen.see === 'broken') return
  }
}

/** Where the `svc serve` of a store answers, or what there is to say instead. */
async function whereItAnswers(storePath: string, context: CheckContext): Promise<URL | SelfSeen> {
  const path = markerPath(storePath)
  const file = await readSmallFile(path, markerBytes, context.signal).catch((error: unknown) => {
    context.signal.throwIfAborted()
    return isMissing(error) ? undefined : null
  })
  if (file === undefined) return { see: 'no serve' }
  const marker = file === null ? undefined : parseMarker(file.text)
  if (!file || !marker) return { see: 'bad marker', why: `${path} is not what svc serve writes` }
  if (marker.pid === process.pid) return { see: 'own process', origin: marker.url.origin }
  const began = await startedAt(marker.pid, context.date().getTime())
  const recycled = began !== undefined && began > file.modified.getTime() + recycledMs
  if (recycled || !isAlive(marker.pid)) return { see: 'no serve', why: `its process ${marker.pid} has ended` }
  return (
    onThisMachine(marker.url, ownAddresses()) ?? {
      see: 'bad marker',
      why: `${path} leads to another machine, which is not asked`,
    }
  )
}

/** Only whether it answers matters, and nothing secret is sent: its certificate may be for a public name. */
async function ask(url: URL, context: CheckContext): Promise<SelfSeen> {
  const patience = deadlineSignal(context.signal, answerMs)
  const started = context.now()
  try {
    const { signal } = patience
    const { status } = await get(url, { signal, lookup: context.lookup, maxBytes: 65_536, anyCertificate: true })
    return { see: 'serve', origin: url.origin, path: url.pathname, status, ms: context.now() - started }
  } catch (error) {
    if (!patience.signal.aborted) throw error
    throw new ProbeError('timeout', `${url.origin}${url.pathname} gave no answer in ${answerMs / 1_000} s`)
  } finally {
    patience.clear()
  }
}

export function evaluateSelf(seen: SelfSeen): Result {
  switch (seen.see) {
    case 'version':
      return ok('version', `svc ${seen.svc} on Node ${seen.node}`)
    case 'delay':
      return atMost({
        check: 'event loop',
        what: 'longest delay',
        value: seen.ms,
        unit: 'duration',
        threshold: delayThreshold,
      })
    case 'no serve':
      return ok('serve', `no svc serve of this store runs here${seen.why === undefined ? '' : `: ${seen.why}`}`)
    case 'bad marker':
      return warn('serve', seen.why)
    case 'own process':
      return ok('serve', `this process is the svc serve of this store, ${seen.origin}`)
    case 'serve': {
      const address = new URL(seen.origin).host
      const said = `${seen.origin}${seen.path} answered ${seen.status}`
      return seen.status >= 200 && seen.status < 300
        ? ok('serve', said, { measurement: { value: seen.ms, unit: 'milliseconds' }, address })
        : fail('serve', 'protocol', said, { address })
    }
    case 'broken':
      return evaluateBroken(seen)
  }
}
