/** Callers of `svc serve` during a measurement: those who ask for health, and the scraper of its metrics. */
import { Agent, get } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { Callers } from './figures.ts'
import { sortedOf } from './figures.ts'

/** A caller gives up after this time. Milliseconds. */
const patienceMs = 30_000

type Answer = { readonly status: number; readonly bytes: number; readonly ms: number; readonly text: string }

async function request(url: string, agent: Agent, keepText = false): Promise<Answer> {
  const start = performance.now()
  return await new Promise((resolve, reject) => {
    const sent = get(url, {
      agent,
      signal: AbortSignal.timeout(patienceMs),
      headers: { accept: 'application/json, text/plain' },
    })
    sent.once('error', reject)
    sent.once('response', (response) => {
      let bytes = 0
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (keepText) chunks.push(chunk)
      })
      response.once('error', reject)
      response.once('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          bytes,
          ms: performance.now() - start,
          text: String(Buffer.concat(chunks)),
        }),
      )
    })
  })
}

/**
 * Callers who ask for the health of each of these types in turn, once a second, each at its own moment of the second, and
 * each on a connection of its own.
 */
export function startCallers(url: string, count: number, types: readonly string[]) {
  const took: number[] = []
  const failures: Record<string, number> = {}
  const agent = new Agent({ keepAlive: true, maxSockets: count })
  const stopped = new AbortController()
  let [bytes, answers, isMeasured] = [0, 0, false]
  const ask = async (type: string): Promise<void> => {
    const counts = isMeasured
    const fail = (why: string): void => {
      if (counts) failures[why] = (failures[why] ?? 0) + 1
    }
    try {
      const answer = await request(`${url}/healthcheck?ExecutionMode=Standard&ServerType=${type}`, agent)
      if (answer.status !== 200) fail(String(answer.status))
      if (!counts) return
      took.push(answer.ms)
      bytes += answer.bytes
      answers += 1
    } catch (error) {
      if (!stopped.signal.aborted) fail((error as NodeJS.ErrnoException).code ?? String(error))
    }
  }
  const caller = async (number: number): Promise<void> => {
    const start = performance.now() + (number / count) * 1_000
    for (let turn = 0; !stopped.signal.aborted; turn += 1) {
      const due = start + turn * 1_000
      const left = due - performance.now()
      if (left > 0) await wait(left, undefined, { signal: stopped.signal }).catch(() => {})
      if (stopped.signal.aborted) return
      // Who gets no answer within the second does not ask again before it comes.
      await ask(types[(number + turn) % types.length] ?? '')
    }
  }
  const all = Promise.all(Array.from({ length: count }, (_, number) => caller(number)))
  return {
    begin: (): void => {
      isMeasured = true
    },
    end: (): Callers => {
      isMeasured = false
      return {
        answers,
        took: sortedOf([took]),
        failures: { ...failures },
        kilobytes: bytes / 1_024 / Math.max(1, answers),
      }
    },
    stop: async (): Promise<void> => {
      stopped.abort()
      agent.destroy()
      await all
    },
  }
}

export type Scrape = {
  readonly ms: number
  readonly megabytes: number
  /** Results without a verdict, and failed ones. */
  readonly notChecked: number
  readonly failed: number
  /** Of the failed ones, by the class of the fault. */
  readonly faults: Readonly<Record<string, number>>
}

/** Takes the metrics once, as Prometheus does. */
export async function scrape(url: string): Promise<Scrape> {
  const agent = new Agent()
  try {
    const { status, bytes, ms, text } = await request(`${url}/metrics`, agent, true)
    if (status !== 200) throw new Error(`/metrics answered ${status}`)
    const faults: Record<string, number> = {}
    for (const [, fault = ''] of text.matchAll(/^svc_check_fault\{[^\n]*fault="([a-z]+)"[^\n]*\} 1$/gm)) {
      faults[fault] = (faults[fault] ?? 0) + 1
    }
    return {
      ms,
      megabytes: bytes / 2 ** 20,
      notChecked: countOf(text, /^svc_check_not_checked\{.*\} 1$/gm),
      failed: countOf(text, /^svc_check_success\{.*\} 0$/gm),
      faults,
    }
  } finally {
    agent.destroy()
  }
}

const countOf = (text: string, pattern: RegExp): number => [...text.matchAll(pattern)].length
