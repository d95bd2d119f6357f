import type { Fault } from '../errors.ts'
import type { Progress, Stage } from './exchange.ts'

/** Milliseconds for the name, the connection, the proxy's tunnel and the TLS handshake together. */
const connectMs = 10_000
/** Milliseconds without a byte after the request was sent, before svc asks whether the server lives. */
const silentMs = 3_000
/** Milliseconds for the answer to that question. */
const aliveMs = 5_000
/** A timer that is later than this shows that this process stood still, and proves nothing about the server. */
const standstillMs = 500

const connecting: ReadonlySet<Stage> = new Set<Stage>(['resolving', 'connecting', 'tunnel', 'handshake'])

export type HangWatch = {
  /** Whether the caller has set a time limit. It rules: nothing else ends the exchange then. */
  readonly hasTimeout: boolean
  /** Sends the question whether the server lives, on a connection of its own. Rejects like an exchange. */
  readonly askAlive: (signal: AbortSignal, progress: Progress) => Promise<unknown>
  /** The fault of an exchange that does not get as far as its request. */
  readonly notConnected: (ms: number) => Fault
  /** The fault of a server that hangs: milliseconds without an answer, to the request and to the question. */
  readonly hanging: (silent: number, alive: number) => Fault
}

/**
 * Runs one exchange and ends it early when the server shows no life: when the connection takes too long, or when no byte
 * of an answer arrives and a second connection stays silent, too. A server that answers the question with anything, or
 * refuses the second connection, may be slow: the exchange then has all of its time. Rejects like `work`, or with a
 * fault of `watch`.
 */
export async function watchHang<T>(
  signal: AbortSignal,
  progress: Progress,
  watch: HangWatch,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const end = new AbortController()
  const answered = new AbortController()
  let connectTimer: NodeJS.Timeout | undefined
  const limitConnecting = (): void => {
    const began = performance.now()
    connectTimer = setTimeout(() => {
      if (watch.hasTimeout || !connecting.has(progress.stage)) return
      if (stoodStill(began, connectMs)) limitConnecting()
      else end.abort(watch.notConnected(connectMs))
    }, connectMs)
  }
  limitConnecting()
  let silenceTimer: NodeJS.Timeout | undefined
  progress.onSent = () => {
    const sentAt = performance.now()
    silenceTimer = setTimeout(() => {
      void isSilent(AbortSignal.any([signal, answered.signal]), watch).then((silent) => {
        if (!silent || answered.signal.aborted) return
        progress.hangs = true
        if (!watch.hasTimeout) end.abort(watch.hanging(performance.now() - sentAt, aliveMs))
      })
    }, silentMs)
  }
  progress.onAnswer = () => {
    clearTimeout(silenceTimer)
    answered.abort()
  }
  try {
    return await work(AbortSignal.any([signal, end.signal]))
  } finally {
    clearTimeout(connectTimer)
    progress.onAnswer()
    progress.onSent = undefined
    progress.onAnswer = undefined
  }
}

/** Whether the server says nothing at all on a second connection. Never rejects. */
async function isSilent(signal: AbortSignal, watch: HangWatch): Promise<boolean> {
  const began = performance.now()
  const late = AbortSignal.timeout(aliveMs)
  let hasAnswer = false
  const progress: Progress = {
    stage: 'connecting',
    onAnswer: () => {
      hasAnswer = true
    },
  }
  try {
    await watch.askAlive(AbortSignal.any([signal, late]), progress)
    return false
  } catch {
    // A refused or broken second connection proves no hang: the server may be closing its listener.
    if (!late.aborted || signal.aborted || hasAnswer) return false
    return stoodStill(began, aliveMs) ? await isSilent(signal, watch) : true
  }
}

const stoodStill = (began: number, ms: number): boolean => performance.now() - began > ms + standstillMs
