/**
 * Runs kinds against peers that a test names, in a process of its own, and measures what each run costs. Whatever the
 * peers cost is the cost of the test's process.
 */
import { once } from 'node:events'
import { connect, Socket } from 'node:net'
import { Fault } from '../../../src/core/base/errors.ts'
import { readSettings, type SettingsSpec } from '../../../src/core/base/settings/index.ts'
import type { Kind, Result } from '../../../src/core/checks/engine/index.ts'
import { type KindName, monitors } from '../../../src/core/checks/kinds/index.ts'
import { openClient } from '../../../src/core/client/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { type RunKindOptions, runKind } from '../engine/run-kind.ts'
import { hostilePassword } from './password.ts'

export type HostileRun = {
  /** `client`: the client of `svc health --server`. */
  readonly kind: KindName | 'client' | 'planted'
  /** As svc.yaml gives them. */
  readonly settings: Readonly<Record<string, unknown>>
  readonly mode: ExecutionMode
  readonly timeoutMs: number
  /** Whether everything that arrives reaches svc one byte at a time. */
  readonly byteByByte: boolean
  /** Folders of allowed programs, for exec. */
  readonly allow?: readonly string[]
}
export type HostileReport = {
  /** Milliseconds of processor time of the whole process. */
  readonly ms: number
  /** Bytes that were copied to join what had arrived: a figure that the load of the machine does not change. */
  readonly copied: number
  readonly results: readonly {
    readonly check: string
    readonly status: string
    readonly fault?: string
    readonly message: string
    /** Characters of the message and of the details. */
    readonly length: number
  }[]
}

const context = { env: { HOSTILE_PASSWORD: hostilePassword }, folder: '/' }

type Push = (this: Socket, chunk: Buffer | null, encoding?: BufferEncoding) => boolean
const prototype = Socket.prototype as unknown as { push: Push }
const push = prototype.push

/** The chunks that each socket has received and has not passed on. */
const arrived = new WeakMap<Socket, { chunks: (Buffer | null)[]; at: number }>()

/** Passes on one byte in each turn of the event loop, as if every byte had come in a segment of its own. */
const oneByOne: Push = function oneByOne(chunk) {
  const waiting = arrived.get(this)
  if (waiting) {
    waiting.chunks.push(chunk)
    return true
  }
  const queue = { chunks: [chunk], at: 0 }
  arrived.set(this, queue)
  const next = (): void => {
    const [first] = queue.chunks
    if (first === undefined || this.destroyed) {
      arrived.delete(this)
      return
    }
    if (first !== null && first.length > 0) {
      push.call(this, first.subarray(queue.at, queue.at + 1))
      queue.at += 1
    }
    if (first === null) push.call(this, null)
    if (first === null || queue.at >= first.length) {
      queue.chunks.shift()
      queue.at = 0
    }
    setImmediate(next)
  }
  next()
  return true
}

let copied = 0
const { concat } = Buffer
Buffer.concat = (...parameters) => {
  const joined = concat(...parameters)
  copied += joined.length
  return joined
}

const processorMs = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

async function prepared(
  name: KindName,
  settings: HostileRun['settings'],
  mode: ExecutionMode,
  options: RunKindOptions,
): Promise<() => Promise<readonly Result[]>> {
  const { default: kind } = await monitors[name].load()
  await kind.preload?.()
  const { values, problems } = readSettings(kind.settings, settings, context)
  if (problems.length > 0) throw new Error(`${name}: ${JSON.stringify(problems)}`)
  return () => runKind(kind as unknown as Kind<SettingsSpec>, values as never, mode, options)
}

/** Asks a server for its health, as the command does. */
async function askedBy(baseUrl: string, timeoutMs: number): Promise<readonly Result[]> {
  const client = openClient({ baseUrl, userAgent: 'svc/test', env: {} })
  const call = {
    caller: { kind: 'local', account: 'tester' },
    correlationId: 'c0ffee-1',
    signal: new AbortController().signal,
    timeoutMs,
  } as const
  try {
    const { Status } = await client.healthCheck({ ExecutionMode: 'Basic', ServerType: 'App' }, call)
    return [{ check: 'health', status: Status === 'Success' ? 'ok' : 'failed', message: `it reports ${Status}` }]
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const fault = error.fault === 'Timeout' ? 'timeout' : 'protocol'
    return [{ check: 'health', status: 'failed', fault, message: error.message }]
  }
}

/** Milliseconds of processor time after so many bytes, the same on each machine. */
const plantedMs = {
  /** Grows 28-fold from 10 KB to 100 KB, and 75-fold from there to 1 MB. */
  'partly quadratic': (bytes: number) => bytes / 1_000 + (bytes / 6_250) ** 2,
  /** Grows 18-fold from 10 KB to 100 KB, and 6-fold from there to 1 MB, as if one size needed a garbage collection. */
  'linear with a step': (bytes: number) => bytes / 1_000 + (bytes < 50_000 ? 0 : 80),
} as const
export type PlantedReader = 'copies' | keyof typeof plantedMs

function work(ms: number): void {
  const end = processorMs() + ms
  while (processorMs() < end);
}

/** Reads a text to its end, as a planted reader: the test must find some of these, and must not find others. */
async function planted(port: unknown, reader: PlantedReader): Promise<readonly Result[]> {
  let received = Buffer.alloc(0)
  let bytes = 0
  const socket = connect({ host: '127.0.0.1', port: Number(port) })
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (reader !== 'copies') return
    received = Buffer.concat([received, chunk])
    received.toString('latin1').includes('the end')
  })
  await once(socket, 'close')
  if (reader !== 'copies') work(plantedMs[reader](bytes))
  return [{ check: 'planted', status: 'ok', message: 'read' }]
}

async function report({
  kind: name,
  settings,
  mode,
  timeoutMs,
  byteByByte,
  allow,
}: HostileRun): Promise<HostileReport> {
  const options = { timeoutMs, ...(allow ? { exec: { allow } } : {}) }
  const run =
    name === 'planted'
      ? () => planted(settings['port'], settings['reader'] as PlantedReader)
      : name === 'client'
        ? () => askedBy(String(settings['url']), timeoutMs)
        : await prepared(name, settings, mode, options)
  prototype.push = byteByByte ? oneByOne : push
  copied = 0
  const before = processorMs()
  const value = await run()
  return {
    ms: processorMs() - before,
    copied,
    results: value.map(({ check, status, fault, message, details = [] }) => ({
      check,
      status,
      ...(fault === undefined ? {} : { fault }),
      message: message.slice(0, 300),
      length: message.length + details.join('').length,
    })),
  }
}

process.on('message', (run: HostileRun) => {
  report(run).then(
    (done) => process.send?.({ report: done }),
    (error: unknown) =>
      process.send?.({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  )
})
