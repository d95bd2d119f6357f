import { readdir } from 'node:fs/promises'
import type { Family, Sample } from '../reports/index.ts'

/** Counts answers by route, method and status; every label has few values, whatever callers send. */
export class Metrics {
  readonly #answers = new Counts<'route' | 'method' | 'status'>()
  /** Requests inside of batches. */
  readonly #batched = new Counts<'request' | 'status'>()
  #refusedConnections = 0
  readonly #droppedLogLines: (() => number) | undefined

  constructor(droppedLogLines: (() => number) | undefined) {
    this.#droppedLogLines = droppedLogLines
  }

  answered(route: string, method: string, status: number): void {
    this.#answers.add({ route, method: methods.has(method) ? method : 'other', status: String(status) })
  }

  /** One request of a batch (R3), which `answered` counts as one. */
  answeredInBatch(request: string, status: number): void {
    this.#batched.add({ request, status: String(status) })
  }

  refusedConnection(): void {
    this.#refusedConnections += 1
  }

  /** Requests, connections, the log and the process; `underWay` is the number of requests being answered. */
  async families(underWay: number): Promise<readonly Family[]> {
    const { rss, heapUsed, heapTotal } = process.memoryUsage()
    const cpu = process.cpuUsage()
    const started = Date.now() / 1_000 - process.uptime()
    return [
      counter('svc_http_requests', 'Answers, by route, method and status.', this.#answers.samples()),
      counter(
        'svc_http_batched_requests',
        'Requests answered inside of batches, by name and status.',
        this.#batched.samples(),
      ),
      gauge('svc_http_requests_in_flight', 'Requests being answered, this one included.', underWay),
      counter(
        'svc_http_connections_refused',
        'Connections closed unanswered because there were too many, or too many requests on one.',
        only(this.#refusedConnections),
      ),
      counter(
        'svc_log_lines_dropped',
        'Log lines dropped because the log could not be written.',
        only(this.#droppedLogLines?.()),
      ),
      counter('process_cpu_seconds', 'CPU time used.', only((cpu.user + cpu.system) / 1e6)),
      gauge('process_resident_memory_bytes', 'Memory in use.', rss),
      gauge('process_start_time_seconds', 'Start of the process, in Unix time.', Math.round(started * 1e3) / 1e3),
      gauge('process_open_fds', 'Open file descriptors.', await openFiles()),
      gauge('nodejs_heap_size_used_bytes', 'JavaScript heap in use.', heapUsed),
      gauge('nodejs_heap_size_total_bytes', 'JavaScript heap reserved.', heapTotal),
    ]
  }
}

/** One counter with labels. */
class Counts<Name extends string> {
  readonly #samples = new Map<string, { readonly labels: Readonly<Record<Name, string>>; value: number }>()

  add(labels: Readonly<Record<Name, string>>): void {
    const key = Object.values(labels).join(' ')
    const existing = this.#samples.get(key)
    if (existing) existing.value += 1
    else this.#samples.set(key, { labels, value: 1 })
  }

  samples(): readonly Sample[] {
    return [...this.#samples.values()].map(({ labels, value }) => ({ labels, value }))
  }
}

const methods = new Set(['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'])

/** The one sample of a family without labels; none where the figure is not known. */
export const only = (value: number | undefined): readonly Sample[] => (value === undefined ? [] : [{ value }])

export const gauge = (name: string, help: string, value: number | undefined): Family => ({
  name,
  type: 'gauge',
  help,
  samples: only(value),
})

export const counter = (name: string, help: string, samples: readonly Sample[]): Family => ({
  name,
  type: 'counter',
  help,
  samples,
})

/** Undefined where the system does not list them. */
async function openFiles(): Promise<number | undefined> {
  try {
    // Listing them opens one more.
    return (await readdir('/proc/self/fd')).length - 1
  } catch {
    return undefined
  }
}
