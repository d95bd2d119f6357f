import { readdirSync, readFileSync } from 'node:fs'
import { queryObjects, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** The resources of a process that have an end of their own: these must be as before, to the last one. */
export type Holdings = {
  /** The resources that keep the event loop busy, e.g. `TCPSocketWrap: 2`. */
  readonly resources: Readonly<Record<string, number>>
  readonly files: number
  readonly threads: number
  /** Zombies among them. */
  readonly children: number
  readonly zombies: number
  /** Of the process itself, by event. */
  readonly listeners: Readonly<Record<string, number>>
}

/** The memory in use after everything that can be freed is free. Bytes, and objects that are alive. */
export type Memory = {
  readonly rss: number
  readonly heap: number
  readonly external: number
  readonly objects: number
}

const counted = (names: readonly string[]): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  for (const name of [...names].sort()) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

/** Of this process. Linux. */
export function measureHoldings(): Holdings {
  const tasks = readdirSync('/proc/self/task')
  const children = tasks.flatMap((task) => readFileSync(`/proc/self/task/${task}/children`, 'utf8').match(/\d+/g) ?? [])
  return {
    resources: counted(process.getActiveResourcesInfo()),
    // Less the one that the look at the folder takes.
    files: readdirSync('/proc/self/fd').length - 1,
    threads: tasks.length,
    children: children.length,
    zombies: children.filter(isZombie).length,
    listeners: Object.fromEntries(
      process.eventNames().map((name) => [String(name), process.listenerCount(name)] as const),
    ),
  }
}

function isZombie(pid: string): boolean {
  try {
    // The name, in brackets, may hold anything.
    return /^\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*(?=\) )/s, ''))
  } catch {
    return false
  }
}

/** Of this process; frees first what can be freed. */
export async function measureMemory(): Promise<Memory> {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  // What is freed by a finalizer is freed in a later turn.
  for (let round = 0; round < 4; round += 1) {
    gc()
    await new Promise((resolve) => setImmediate(resolve))
  }
  // Counted one by one: nothing that stays, were it one listener a run, hides behind the noise of bytes.
  const objects = queryObjects(Object, { format: 'count' }) as unknown as number
  const { rss, heapUsed, external } = process.memoryUsage()
  return { rss, heap: heapUsed, external, objects }
}
