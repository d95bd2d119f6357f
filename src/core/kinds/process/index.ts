import { setTimeout as pause } from 'node:timers/promises'
import { includes, monitorKind } from '../../engine/index.ts'
import { cpuWindowMs } from '../../system/cpu.ts'
import { fileTrouble, readSmallFile } from '../../system/files.ts'
import { preloadSystemInformation } from '../../system/listing.ts'
import { type Candidate, findProcesses, type Usage, usage } from '../../system/processes.ts'
import { evaluateProcess, type ProcessSeen, type ProcessSettings, processSettings } from './judge.ts'

/** Figures are read of so many processes; more of one name are counted only. */
const mostRead = 200

/** The command line is never shown: it may hold secrets. */
export default monitorKind({
  name: 'process',
  title: 'A process of this machine: running, how many, how large',
  preload: preloadSystemInformation,
  settings: processSettings,
  checks: [
    { name: 'running', depth: 'Basic', doc: 'At least one runs, by name, command line or process id file' },
    { name: 'count', depth: 'Standard', doc: 'As many run as should' },
    { name: 'memory', depth: 'Standard', doc: 'Resident memory of the largest, where a threshold is set' },
    { name: 'cpu', depth: 'Standard', doc: 'Processor use over 500 ms, where a threshold is set; Linux only' },
    { name: 'restarted', depth: 'Advanced', doc: 'Warns when the youngest started lately' },
    { name: 'open files', depth: 'Advanced', doc: 'Open files of the fullest; left out where not readable' },
  ],
  validate: ({ executable, match, pidFile }) =>
    executable || match || pidFile ? undefined : 'does not say which process: give executable, match or pidFile',
  async *observe(settings, context): AsyncGenerator<ProcessSeen> {
    context.step('running')
    const { found, details } = await find(settings, context.signal)
    const alive = found.filter((one) => !one.zombie)
    yield { see: 'running', pids: alive.map((one) => one.pid), zombies: found.length - alive.length, details }
    if (!includes(context.mode, 'Standard')) return
    yield { see: 'count', running: alive.length }
    if (alive.length === 0) return

    const advanced = includes(context.mode, 'Advanced')
    const read = async (): Promise<(Usage & { readonly pid: number })[]> =>
      await Promise.all(
        alive.slice(0, mostRead).map(async (one) => ({ pid: one.pid, ...(await usage(one, advanced)) })),
      )
    context.step('memory')
    const start = context.now()
    const figures = await read()
    const bytes = most(figures, (one) => one.rss)
    if (settings.memory && bytes) yield { see: 'memory', pid: bytes.pid, bytes: bytes.value }
    if (advanced) {
      const youngest = most(figures, (one) => (one.age === undefined ? undefined : -one.age))
      if (youngest) yield { see: 'age', pid: youngest.pid, ms: -youngest.value }
      const fullest = most(figures, ({ openFiles }) => openFiles && openFiles.open / openFiles.limit)
      const files = figures.find((one) => one.pid === fullest?.pid)?.openFiles
      if (fullest && files) yield { see: 'files', pid: fullest.pid, ...files }
    }
    if (settings.cpu && figures.some((one) => one.cpu !== undefined)) {
      context.step('cpu')
      await pause(Math.max(0, Math.ceil(cpuWindowMs - (context.now() - start)) + 1), undefined, {
        signal: context.signal,
      })
      const later = new Map((await read()).map((one) => [one.pid, one.cpu]))
      const window = context.now() - start
      // One that ended meanwhile took no time that could still be read.
      const spent = figures.map(({ pid, cpu = 0 }) => Math.max(0, (later.get(pid) ?? cpu) - cpu))
      yield { see: 'cpu', percent: (spent.reduce((sum, ms) => sum + ms, 0) / window) * 100 }
    }
  },
  evaluate: evaluateProcess,
})

function most<T extends { readonly pid: number }>(
  list: readonly T[],
  of: (one: T) => number | undefined,
): { readonly pid: number; readonly value: number } | undefined {
  const known = list.flatMap((one) => {
    const value = of(one)
    return value === undefined ? [] : [{ pid: one.pid, value }]
  })
  return known.toSorted((a, b) => b.value - a.value)[0]
}

/** Those that fit everything that was given; a recycled process id is told by its name. */
async function find(
  { executable, match, pidFile }: ProcessSettings,
  signal: AbortSignal,
): Promise<{ readonly found: readonly Candidate[]; readonly details: readonly string[] }> {
  const pid = pidFile ? await pidIn(pidFile, signal) : undefined
  if (typeof pid === 'string') return { found: [], details: [pid] }
  const fitting = await findProcesses({ name: executable, match, pid }, signal)
  // svc itself must not stand for what it looks for, unless its own process id file is meant.
  const found = fitting.filter((one) => pid !== undefined || one.pid !== process.pid)
  return { found, details: pid === undefined || found.length > 0 ? [] : [`${pidFile} names process ${pid}`] }
}

/** The process id in a file, or why there is none. */
export async function pidIn(path: string, signal: AbortSignal): Promise<number | string> {
  try {
    const [, digits] = /^\s*(\d{1,10})\s*(?:\n|$)/.exec((await readSmallFile(path, 4096, signal)).text) ?? []
    return digits === undefined || Number(digits) < 1 ? `${path} holds no process id` : Number(digits)
  } catch (error) {
    signal.throwIfAborted()
    return `${path} ${fileTrouble(error)}`
  }
}
