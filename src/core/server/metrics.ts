import { readdir } from 'node:fs/promises'
import { getHeapStatistics } from 'node:v8'
import { entryOf } from '../base/lazy.ts'
import type { Family, Sample } from '../protocol/service/family.ts'

/** Counts answers by route, method and status. Every label takes few values, whatever callers send. */
export class Metrics {
  /**
   * Route → status → method → count. Every request counts here, and building one joined key would cost more than
   * counting.
   */
  readonly #answers = new Map<string, Map<number, Map<string, number>>>()
  /** Requests inside batches: name → status → count. */
  readonly #batched = new Map<string, Map<number, number>>()
  #refusedConnections = 0
  readonly #droppedLogLines: (() => number) | undefined

  constructor(droppedLogLines: (() => number) | undefined) {
    this.#droppedLogLines = droppedLogLines
  }

  answered(route: string, method: string, status: number): void {
    const byStatus = entryOf(this.#answers, route, () => new Map<number, Map<string, number>>())
    const byMethod = entryOf(byStatus, status, () => new Map<string, number>())
    const label = methods.has(method) ? method : 'other'
    byMethod.set(label, (byMethod.get(label) ?? 0) + 1)
  }

  /** Counts one request of a batch (R3). `answered` counts the batch as one. */
  answeredInBatch(request: string, status: number): void {
    const byStatus = entryOf(this.#batched, request, () => new Map<number, number>())
    byStatus.set(status, (byStatus.get(status) ?? 0) + 1)
  }

  refusedConnection(): void {
    this.#refusedConnections += 1
  }

  /** Requests, connections, the log and the process. `underWay` is the number of requests in progress. */
  async families(underWay: number): Promise<readonly Family[]> {
    const { used_heap_size: heapUsed, total_heap_size: heapTotal } = getHeapStatistics()
    const cpu = process.cpuUsage()
    const started = Date.now() / 1_000 - process.uptime()
    return [
      counter(
        'svc_http_requests',
        'HTTP responses, by route, method and status.',
        [...this.#answers].flatMap(([route, byStatus]) =>
          [...byStatus].flatMap(([status, byMethod]) =>
            [...byMethod].map(([method, value]) => ({ labels: { route, method, status: String(status) }, value })),
          ),
        ),
      ),
      counter(
        'svc_http_batched_requests',
        'Requests answered within batches, by request name and status.',
        [...this.#batched].flatMap(([request, byStatus]) =>
          [...byStatus].map(([status, value]) => ({ labels: { request, status: String(status) }, value })),
        ),
      ),
      gauge('svc_http_requests_in_flight', 'Requests in progress, including this one.', underWay),
      counter(
        'svc_http_connections_refused',
        'Connections closed without a response because a limit on connections or on requests per connection was exceeded.',
        only(this.#refusedConnections),
      ),
      counter(
        'svc_log_lines_dropped',
        'Log lines dropped because the log could not be written.',
        only(this.#droppedLogLines?.()),
      ),
      counter(
        'process_cpu_seconds',
        'Total user and system CPU time, in seconds.',
        only((cpu.user + cpu.system) / 1e6),
      ),
      gauge('process_resident_memory_bytes', 'Resident memory size, in bytes.', residentMemory()),
      gauge('process_start_time_seconds', 'Start time of the process, in Unix time.', Math.round(started * 1e3) / 1e3),
      gauge('process_open_fds', 'Number of open file descriptors.', await openFiles()),
      gauge('nodejs_heap_size_used_bytes', 'Used JavaScript heap, in bytes.', heapUsed),
      gauge('nodejs_heap_size_total_bytes', 'Reserved JavaScript heap, in bytes.', heapTotal),
    ]
  }
}

const methods = new Set(['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'])

/** The single sample of a family without labels; none when the value is unknown. */
const only = (value: number | undefined): readonly Sample[] => (value === undefined ? [] : [{ value }])

const gauge = (name: string, help: string, value: number | undefined): Family => ({
  name,
  type: 'gauge',
  help,
  samples: only(value),
})

const counter = (name: string, help: string, samples: readonly Sample[]): Family => ({
  name,
  type: 'counter',
  help,
  samples,
})

/** Undefined when no file descriptor is left, with which Node reads it. */
function residentMemory(): number | undefined {
  try {
    return process.memoryUsage.rss()
  } catch {
    return undefined
  }
}

/** Undefined where the system does not list them. */
async function openFiles(): Promise<number | undefined> {
  try {
    // Listing them opens one more descriptor.
    return (await readdir('/proc/self/fd')).length - 1
  } catch {
    return undefined
  }
}
