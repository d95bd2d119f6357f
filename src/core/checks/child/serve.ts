import { readSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { ProbeError } from '../../base/probe-error.ts'
import type { Probes } from './probes.ts'

export type ProbeQuestion = { readonly probe: string; readonly input: unknown }
/** The single line that a child replies with. */
export type ProbeAnswer =
  | { readonly value: unknown }
  | {
      readonly error: {
        readonly message: string
        readonly code?: string | undefined
        /** Present for a ProbeError. */
        readonly fault?: string | undefined
        readonly details?: readonly string[] | undefined
      }
    }

/**
 * The child's side: reads one line from standard input, runs the probe and writes one line. It then stays until its
 * parent kills it or ends; the parent never closes the input before that.
 */
export async function serveProbe(probes: Probes): Promise<void> {
  const question = JSON.parse(readLine()) as ProbeQuestion
  const watch = new Worker(dieWithParent, { eval: true })
  watch.unref()
  const answer = await Promise.race([answerTo(question, probes), uncaught()])
  process.stdout.write(`${JSON.stringify(answer)}\n`)
}

async function answerTo(question: ProbeQuestion, probes: Probes): Promise<ProbeAnswer> {
  try {
    const load = Object.hasOwn(probes, question.probe) ? probes[question.probe] : undefined
    if (!load) throw new Error(`unknown probe ${question.probe}`)
    return { value: await (await load()).default(question.input) }
  } catch (error) {
    return failure(error)
  }
}

/**
 * Catches errors that a driver throws outside every promise. Node would print the source line with them, which is the
 * whole bundle.
 */
const uncaught = (): Promise<ProbeAnswer> =>
  new Promise((resolve) => {
    process.on('uncaughtException', (error) => resolve(failure(error)))
  })

function failure(error: unknown): ProbeAnswer {
  if (error instanceof ProbeError) {
    return { error: { message: error.message, fault: error.fault, details: error.details } }
  }
  const { message, code } = error as { message?: unknown; code?: unknown }
  return { error: { message: String(message ?? error), code: typeof code === 'string' ? code : undefined } }
}

/**
 * Ends this process together with its parent, even if the parent was killed by SIGKILL while the probe blocks the main
 * thread: standard input closes then. It waits in its event loop and not in `readSync`, because a thread that blocks in
 * a system call cannot be ended: `process.exit` of a driver would wait for it for ever.
 */
const dieWithParent = `
const { Socket } = require('node:net')
const end = () => process.kill(process.pid, 'SIGKILL')
new Socket({ fd: 0, readable: true, writable: false }).on('error', end).on('close', end).resume()
`

/** Reads without `process.stdin`, which would take the input away from the watching thread. */
function readLine(): string {
  const chunks: Buffer[] = []
  for (;;) {
    const chunk = Buffer.alloc(65_536)
    const length = readSome(chunk)
    chunks.push(chunk.subarray(0, length))
    if (length === 0 || chunk.subarray(0, length).includes(0x0a)) return Buffer.concat(chunks).toString('utf8')
  }
}

function readSome(chunk: Buffer): number {
  for (;;) {
    try {
      return readSync(0, chunk)
    } catch (error) {
      // The pipe is non-blocking and still empty.
      if ((error as { code?: unknown }).code !== 'EAGAIN') throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
    }
  }
}
