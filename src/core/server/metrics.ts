import { readdir } from 'node:fs/promises'

/** Counts answers by route, method and status; every label has few values, whatever callers send. */
export class Metrics {
  /** Route, then method and status. */
  readonly #answers = new Map<string, Map<number, Map<string, number>>>()
  /** Requests inside of batches: the request's name, then the status. */
  readonly #batched = new Map<string, Map<number, number>>()
  #refusedConnections = 0
  readonly #droppedLogLines: (() => number) | undefined

  constructor(droppedLogLines: (() => number) | undefined) {
    this.#droppedLogLines = droppedLogLines
  }

  answered(route: string, method: string, status: number): void {
    const byStatus = entry(this.#answers, route, () => new Map<number, Map<string, number>>())
    const byMethod = entry(byStatus, status, () => new Map<string, number>())
    const known = methods.has(method) ? method : 'other'
    byMethod.set(known, (byMethod.get(known) ?? 0) + 1)
  }

  /** One request of a batch (R3), which `answered` counts as one. */
  answeredInBatch(request: string, status: number): void {
    const byStatus = entry(this.#batched, request, () => new Map<number, number>())
    byStatus.set(status, (byStatus.get(status) ?? 0) + 1)
  }

  refusedConnection(): void {
    this.#refusedConnections += 1
  }

  /** Prometheus text exposition format 0.0.4; `underWay` is the number of requests being answered. */
  async render(underWay: number): Promise<string> {
    const { rss, heapUsed, heapTotal } = process.memoryUsage()
    const cpu = process.cpuUsage()
    const started = Date.now() / 1_000 - process.uptime()
    const answers = [...this.#answers].flatMap(([route, byStatus]) =>
      [...byStatus].flatMap(([status, byMethod]) =>
        [...byMethod].map(
          ([method, count]) =>
            `svc_http_requests_total{route="${route}",method="${method}",status="${status}"} ${count}\n`,
        ),
      ),
    )
    const batched = [...this.#batched].flatMap(([request, byStatus]) =>
      [...byStatus].map(
        ([status, count]) => `svc_http_batched_requests_total{request="${request}",status="${status}"} ${count}\n`,
      ),
    )
    const files = await openFiles()
    return [
      family('svc_http_requests_total', 'counter', 'Answers, by route, method and status.', answers.join('')),
      family(
        'svc_http_batched_requests_total',
        'counter',
        'Requests answered inside of batches, by name and status.',
        batched.join(''),
      ),
      plain('svc_http_requests_in_flight', 'gauge', 'Requests being answered, this one included.', underWay),
      plain(
        'svc_http_connections_refused_total',
        'counter',
        'Connections closed unanswered because there were too many, or too many requests on one.',
        this.#refusedConnections,
      ),
      this.#droppedLogLines === undefined
        ? ''
        : plain(
            'svc_log_lines_dropped_total',
            'counter',
            'Log lines dropped because the log could not be written.',
            this.#droppedLogLines(),
          ),
      plain('process_cpu_seconds_total', 'counter', 'CPU time used.', (cpu.user + cpu.system) / 1e6),
      plain('process_resident_memory_bytes', 'gauge', 'Memory in use.', rss),
      plain(
        'process_start_time_seconds',
        'gauge',
        'Start of the process, in Unix time.',
        Math.round(started * 1e3) / 1e3,
      ),
      files === undefined ? '' : plain('process_open_fds', 'gauge', 'Open file descriptors.', files),
      plain('nodejs_heap_size_used_bytes', 'gauge', 'JavaScript heap in use.', heapUsed),
      plain('nodejs_heap_size_total_bytes', 'gauge', 'JavaScript heap reserved.', heapTotal),
    ].join('')
  }
}

function entry<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key) ?? make()
  map.set(key, known)
  return known
}

const methods = new Set(['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'])

const family = (name: string, type: string, help: string, samples: string): string =>
  samples === '' ? '' : `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${samples}`

const plain = (name: string, type: string, help: string, value: number): string =>
  family(name, type, help, `${name} ${value}\n`)

/** Undefined where the system does not list them. */
async function openFiles(): Promise<number | undefined> {
  try {
    // Listing them opens one more.
    return (await readdir('/proc/self/fd')).length - 1
  } catch {
    return undefined
  }
}
