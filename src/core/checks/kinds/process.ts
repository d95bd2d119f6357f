import { uptime } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { fileProblem } from '../../base/file-errors.ts'
import { type ConfiguredFiles, readText } from '../../base/files/index.ts'
import { count, showDuration } from '../../base/format.ts'
import type { SettingsSpec, Values } from '../../base/settings/index.ts'
import { preloadSystemInformation, throwIfExhausted } from '../../base/system/files.ts'
import {
  type Candidate,
  findProcesses,
  hiddenProcesses,
  seesAllProcesses,
  startedAt,
  type Usage,
  uninterruptibleWait,
  usage,
  whyHidden,
} from '../../base/system/processes.ts'
import { cpuWindowMs } from '../../base/system/resources.ts'
import { limitsOn } from '../assert/limit-check.ts'
import {
  atMost,
  type CheckContext,
  checksOn,
  fail,
  machineKind,
  notChecked,
  ok,
  runIncludes,
  sharedRead,
  showThreshold,
  warn,
} from '../engine/index.ts'

/** Figures are read for at most this many processes; further processes of the same name are only counted. */
const maxRead = 200

const selection = {
  executable: { type: 'text', observed: true, doc: 'Exact name of the executable' },
  match: { type: 'text', observed: true, doc: 'Text that the command line contains' },
  pidFile: { type: 'text', observed: true, doc: 'File that contains the process ID' },
} as const satisfies SettingsSpec
type Selection = Values<typeof selection>

const countSetting = {
  type: 'group',
  doc: 'Expected number of processes; at least one by default',
  fields: {
    min: { type: 'integer', default: 1, min: 0, notAbove: 'max', doc: 'Minimum number' },
    max: { type: 'integer', min: 0, doc: 'Maximum number' },
  },
} as const satisfies SettingsSpec[string]

const runningSetting = {
  type: 'flag',
  default: true,
  doc: '`false`: none may run, by `executable` or `match`; needs sight of the processes of all accounts',
} as const satisfies SettingsSpec[string]

/** The processes that match the selection. */
type Processes = {
  readonly alive: readonly Candidate[]
  readonly zombies: number
  /** The processes that a signal or a debugger has stopped. */
  readonly stopped: readonly number[]
  /** Why no process was found, if known. */
  readonly details: readonly string[]
  /** With which option the system hides the processes of other accounts, where none was found. */
  readonly hiding?: string | undefined
  /** Why the process may be another one than the file means. */
  readonly doubt?: string | undefined
}
const check = checksOn<Processes>()
const limitCheck = limitsOn<Processes>()

/** The checks that evaluate the selection itself share it. */
const selected = (processes: Processes): Promise<Processes> => Promise.resolve(processes)

export const running = check({
  depth: 'Basic',
  results: { running: 'At least one matching process is running, or with `running: false` none' },
  settings: { count: countSetting, running: runningSetting },
  privilege: seesAllProcesses,
  observe: selected,
  evaluate: ({ alive, zombies, stopped, details, hiding, doubt }, { count, running: isExpected }) => {
    if (hiding !== undefined) return notChecked('running', 'permission', whyHidden(hiding))
    const pids = alive.map(({ pid }) => pid)
    const [first, ...others] = pids
    const dead = [
      ...(zombies > 0 ? [`${zombies} exited and not reaped by the parent (zombie)`] : []),
      ...(stopped.length > 0 ? [`${stopped.length} stopped by a signal or a debugger (process ${stopped[0]})`] : []),
    ]
    const measurement = { value: pids.length, unit: 'count' } as const
    if (!isExpected) {
      const pid = first ?? stopped[0]
      if (pid === undefined) return ok('running', ['none running, as expected', ...dead].join('; '), { measurement })
      return fail('running', 'data', `process ${pid} runs, and \`running: false\` expects none`, { measurement })
    }
    if (first === undefined && (count?.min ?? 1) > 0) {
      return fail('running', 'data', ['not running', ...dead, ...details].join('; '), { measurement })
    }
    const which = others.length > 0 ? ` and ${others.length} more` : ''
    const summary = first === undefined ? 'none running, which `count` allows' : `running: process ${first}${which}`
    const message = [summary, ...dead].join('; ')
    if (doubt !== undefined) return warn('running', `${message}; ${doubt}`, { measurement })
    return stopped.length > 0 ? warn('running', message, { measurement }) : ok('running', message, { measurement })
  },
})

export const countCheck = check({
  depth: 'Standard',
  results: { count: 'The number of processes is within `count`' },
  settings: { count: countSetting, running: runningSetting },
  privilege: seesAllProcesses,
  impossibleWith: ({ running }: { readonly running: boolean }) => !running,
  applies: (_, { running }) => running,
  observe: selected,
  evaluate: ({ alive, hiding }, { count: { min = 1, max } = {} }) => {
    if (hiding !== undefined) return notChecked('count', 'permission', whyHidden(hiding))
    const value = alive.length
    const range = max === min ? `expected ${min}` : `expected ${min} to ${max}`
    const lower = max === undefined ? showThreshold({ limit: min }, 'count', 'atLeast') : range
    const message = `${value} running (${lower})`
    if (value < min) {
      return fail('count', 'threshold', message, {
        measurement: { value, unit: 'count', limit: min, bound: 'atLeast' },
      })
    }
    const measurement = {
      value,
      unit: 'count',
      limit: max ?? min,
      bound: max === undefined ? 'atLeast' : 'atMost',
    } as const
    if (max !== undefined && value > max) return fail('count', 'threshold', message, { measurement })
    return ok('count', message, { measurement })
  },
})

/** Milliseconds between the two looks at a process that waits in the kernel. */
const waitMs = 1_000

export const waiting = check({
  depth: 'Standard',
  results: {
    waiting: 'Warns if a process is stuck in the kernel, as on a disk or a share that does not answer (Linux only)',
  },
  applies: ({ alive }) => process.platform === 'linux' && alive.length > 0,
  observe: async ({ alive }, _, { signal, step }) => {
    step('waiting')
    const waits = async () => {
      const some = alive.slice(0, maxRead)
      return await Promise.all(some.map(async ({ pid }) => ({ pid, wait: await uninterruptibleWait(pid) })))
    }
    const before = await waits()
    if (before.every(({ wait }) => wait === undefined)) return []
    await pause(waitMs, undefined, { signal })
    const after = new Map((await waits()).map(({ pid, wait }) => [pid, wait]))
    return before.filter(({ pid, wait }) => wait !== undefined && after.get(pid) === wait).map(({ pid }) => pid)
  },
  evaluate: (stuck) => {
    const [first] = stuck
    if (first === undefined) return []
    const others = stuck.length > 1 ? ` and ${stuck.length - 1} more` : ''
    const message = `process ${first}${others} has waited in the kernel for more than ${showDuration(waitMs)} (state D)`
    return warn('waiting', message, {
      details: ['look for a disk or a share that does not answer: dmesg, /proc/PID/stack'],
    })
  },
})

type Figures = Usage & { readonly pid: number }
const readFigures = (processes: readonly Candidate[], withFiles: boolean): Promise<readonly Figures[]> =>
  Promise.all(processes.slice(0, maxRead).map(async (one) => ({ pid: one.pid, ...(await usage(one, withFiles)) })))

/** The figures of each process, and the time of the reading, which starts the window of `cpu`. */
const figures = sharedRead('memory', 'Figures of the processes', async ({ alive }: Processes, context) => {
  const since = context.now()
  return { since, processes: await readFigures(alive, runIncludes(context, 'Advanced')) }
})

export const memory = limitCheck({
  depth: 'Standard',
  check: 'memory',
  proves: 'Resident memory of the largest process; needs a threshold',
  setting: 'memory',
  unit: 'bytes',
  doc: 'Maximum resident memory of the largest process',
  observe: figures,

  emptyWhere: 'no process is running, which the check `running` reports',
  evaluate: ({ processes }, compare) => {
    const largest = greatest(processes, ({ rss }) => rss)
    if (processes.length === 0) return []
    if (!largest) return notChecked('memory', 'missing', 'the system does not report the memory of the process')
    return compare({ what: `process ${largest.pid} uses`, value: largest.value })
  },
})

export const cpu = check({
  depth: 'Standard',
  results: { cpu: 'CPU use over half a second; needs a threshold (Linux only)' },
  settings: {
    cpu: {
      type: 'threshold',
      unit: 'percent',
      doc: 'Maximum CPU use of all processes together, in percent of one CPU, over half a second; exceeding it only warns (Linux only)',
    },
  },
  when: ['cpu'],
  last: true,
  emptyWhere: 'no process is running, which the check `running` reports',
  applies: () => process.platform === 'linux',
  observe: async (processes, settings, context) => {
    const { since, processes: before } = await figures(processes, settings, context)
    const count = before.length
    if (!before.some(({ cpu: spent }) => spent !== undefined)) return { count, percent: undefined }
    const rest = Math.max(0, Math.ceil(cpuWindowMs - (context.now() - since)) + 1)
    await pause(rest, undefined, { signal: context.signal })
    const after = await readFigures(processes.alive, false)
    const window = context.now() - since
    const later = new Map(after.map(({ pid, cpu: spent }) => [pid, spent]))
    // A process that ended in the meantime counts as zero: its time can no longer be read.
    const spent = before.map(({ pid, cpu: ms = 0 }) => Math.max(0, (later.get(pid) ?? ms) - ms))
    return { count, percent: (spent.reduce((sum, ms) => sum + ms, 0) / window) * 100 }
  },
  evaluate: ({ count, percent: value }, { cpu: { warn, limit } = {} }) => {
    const bound = warn ?? limit
    const threshold = bound === undefined ? {} : { warn: bound }
    if (count === 0) return []
    const what = 'CPU use, of one CPU:'
    const figure = 'the CPU use of the process'
    return atMost({ check: 'cpu', what, figure, value, unit: 'percent', threshold })
  },
})

export const restarted = limitCheck({
  depth: 'Advanced',
  check: 'restarted',
  proves: 'Warns when the youngest process started recently',
  setting: 'restarted',
  unit: 'duration',
  default: { warn: 600_000 },
  doc: 'Minimum uptime of the youngest process',
  bound: 'atLeast',
  observe: figures,
  evaluate: ({ processes }, compare) => {
    const youngest = greatest(processes, ({ age }) => (age === undefined ? undefined : -age))
    if (processes.length === 0) return []
    if (!youngest) return notChecked('restarted', 'missing', 'the system does not report when the process started')
    return compare({ what: `process ${youngest.pid} up for`, value: -youngest.value })
  },
})

const looksInside = 'the account of the process, or the capabilities CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH'

/** The result for the processes of another account, which only that account may look into. */
const unseenBy = <const Name extends string>(name: Name) => {
  const grant = 'run svc as the account of the process, or with AmbientCapabilities=CAP_SYS_PTRACE CAP_DAC_READ_SEARCH'
  const why = `this account may not see the open files and the program of the process: ${grant}`
  return notChecked(name, 'permission', why)
}

export const openFiles = limitCheck({
  depth: 'Advanced',
  check: 'open files',
  proves: 'Open files of the process nearest to its limit',
  setting: 'openFiles',
  unit: 'percent',
  default: { warn: 70, limit: 90 },
  doc: 'Maximum number of open files, in percent of the limit of the process; needs access to the process (Linux only)',
  privilege: looksInside,
  observe: figures,
  evaluate: ({ processes }, compare) => {
    const fullest = greatest(processes, ({ openFiles: files }) => files && files.open / files.limit)
    const files = processes.find(({ pid }) => pid === fullest?.pid)?.openFiles
    if (processes.length === 0 || process.platform !== 'linux') return []
    if (!fullest || !files) {
      return unseenBy('open files')
    }
    return compare({
      what: `process ${fullest.pid} has ${files.open} of ${files.limit} files open:`,
      value: fullest.value * 100,
    })
  },
})

export const program = check({
  depth: 'Advanced',
  results: {
    program:
      'The program of each process is still the installed one: after an upgrade, the old one runs until a restart (Linux only)',
  },
  settings: {
    allowReplaced: {
      type: 'flag',
      default: false,
      narrows: true,
      doc: 'Accept processes whose program was replaced or deleted after their start',
    },
  },
  privilege: looksInside,
  applies: ({ alive }, { allowReplaced }) =>
    process.platform === 'linux' && !allowReplaced && alive.some(({ kernel }) => kernel !== true),
  observe: figures,
  evaluate: ({ processes }) => {
    const visible = processes.filter(({ program: state }) => state !== undefined)
    if (visible.length === 0) return unseenBy('program')
    const old = visible.filter(({ program: state }) => state === 'replaced')
    const [first] = old
    const measurement = { value: old.length, unit: 'count', warn: 0, bound: 'atMost' } as const
    if (!first)
      return ok('program', `${count(visible.length, 'process', 'processes')} run the installed program`, {
        measurement,
      })
    const others = old.length > 1 ? ` and ${old.length - 1} more` : ''
    const message = `process ${first.pid}${others} still run${old.length > 1 ? '' : 's'} a program that was replaced or deleted after the start`
    return warn('program', message, {
      measurement,
      details: ['next: restart the service, so that it runs the installed program'],
    })
  },
})

/** The process with the greatest value among those whose value is known. */
function greatest(
  processes: readonly Figures[],
  figure: (process: Figures) => number | undefined,
): { readonly pid: number; readonly value: number } | undefined {
  const startTimes = processes.flatMap((process) => {
    const value = figure(process)
    return value === undefined ? [] : [{ pid: process.pid, value }]
  })
  return startTimes.toSorted((a, b) => b.value - a.value)[0]
}

/** The processes that match all settings. The name guards against a process id that another process now has. */
async function open(settings: Selection, { signal, step, files, date }: CheckContext): Promise<Processes> {
  const { executable, match, pidFile } = settings
  step('running')
  const written = pidFile ? await pidIn(pidFile, files) : undefined
  if (typeof written === 'string') return { alive: [], zombies: 0, stopped: [], details: [written] }
  const pid = written?.pid
  const fitting = await findProcesses({ name: executable, match, pid }, signal)
  // svc itself never counts as a match, unless its own process id file is configured.
  const processes = fitting.filter((one) => pid !== undefined || one.pid !== process.pid)
  const alive = processes.filter(({ zombie, stopped }) => !zombie && stopped !== true)
  const stopped = processes.filter((one) => one.stopped).map((one) => one.pid)
  const details = pid === undefined || processes.length > 0 ? [] : [`${pidFile} names process ${pid}`]
  const [holder] = written && pidFile !== undefined ? processes : []
  const reused = holder && written && (await reuseOf(holder.pid, written.modified, date().getTime()))
  if (reused === 'certain') {
    const why = `${pidFile} names process ${pid}, but that started after the file was written: another process has its id`
    return { alive: [], zombies: 0, stopped: [], details: [why] }
  }
  const hiding = alive.length + stopped.length > 0 ? undefined : await hiddenProcesses()
  return {
    alive,
    zombies: processes.filter(({ zombie }) => zombie).length,
    stopped,
    details,
    hiding,
    doubt:
      reused === 'possible'
        ? `${pidFile} was written before this machine started, so that process ${pid} may be another one`
        : undefined,
  }
}

/** Milliseconds by which a process may start after its file is written: the clock may be set in between. */
const reuseToleranceMs = 60_000

/**
 * Whether a process has got the id of another one that has ended: a program writes its id after it has started.
 * `possible`: the file is older than the machine's start, or the clock was wrong when it was written.
 */
async function reuseOf(pid: number, written: number, now: number): Promise<'certain' | 'possible' | undefined> {
  const started = await startedAt(pid, now)
  if (started === undefined || started <= written + reuseToleranceMs) return undefined
  return written < now - uptime() * 1_000 ? 'possible' : 'certain'
}

/** A process id, and when its file was written, in milliseconds since 1970. */
type WrittenPid = { readonly pid: number; readonly modified: number }

/** The process id in a file, or why the file has none. */
export async function pidIn(path: string, files: ConfiguredFiles): Promise<WrittenPid | string> {
  try {
    const { text, status } = await readText(files, path, 4096)
    const [, digits] = /^\s*(\d{1,10})\s*(?:\n|$)/.exec(text) ?? []
    return digits === undefined || Number(digits) < 1
      ? `${path} contains no process id`
      : { pid: Number(digits), modified: status.modified }
  } catch (error) {
    throwIfExhausted(error)
    return `${path} ${fileProblem(error)}`
  }
}

/** Never shows the command line: it may contain secrets. */
export default machineKind({
  name: 'process',
  title: 'Processes on this machine: whether they run, how many, and their resource use',
  preload: preloadSystemInformation,
  cost: { machine: 'It reads the processes of this machine.' },
  settings: selection,
  validate: ({ executable, match, pidFile, running, count }) => {
    if (!running && (pidFile !== undefined || count !== undefined))
      return 'running: false needs executable or match, without pidFile and count: a file proves nothing of processes that are not in it'
    return executable || match || pidFile ? undefined : 'does not name a process: set executable, match or pidFile'
  },
  open,
  checks: [running, countCheck, waiting, memory, cpu, restarted, openFiles, program],
})
