import { atLeast, atMost, fail, ok, type Result } from '../../engine/index.ts'
import type { Values } from '../../settings/index.ts'

export const processSettings = {
  executable: { type: 'text', doc: 'Name of the executable, exactly' },
  match: { type: 'text', doc: 'Text that the command line contains' },
  pidFile: { type: 'text', doc: 'File that holds the process id' },
  count: {
    type: 'group',
    doc: 'How many should run; at least one unless said',
    fields: {
      min: { type: 'integer', default: 1, min: 0, doc: 'At least so many' },
      max: { type: 'integer', min: 0, doc: 'At most so many' },
    },
  },
  memory: { type: 'threshold', unit: 'bytes', doc: 'Resident memory of the largest of them' },
  cpu: {
    type: 'threshold',
    unit: 'percent',
    doc: 'Of one processor, all of them together, over half a second; only ever warns (Linux)',
  },
  restarted: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 600_000 },
    doc: 'How long the youngest of them should have run',
  },
  openFiles: {
    type: 'threshold',
    unit: 'percent',
    default: { warn: 70, limit: 90 },
    doc: 'Open files, of those that the process may open; only where this account may look (Linux)',
  },
} as const
export type ProcessSettings = Values<typeof processSettings>

/** Bytes, milliseconds, percent of one processor. */
export type ProcessSeen =
  | {
      readonly see: 'running'
      readonly pids: readonly number[]
      readonly zombies: number
      readonly details: readonly string[]
    }
  | { readonly see: 'count'; readonly running: number }
  | { readonly see: 'memory'; readonly pid: number; readonly bytes: number }
  | { readonly see: 'cpu'; readonly percent: number }
  | { readonly see: 'age'; readonly pid: number; readonly ms: number }
  | { readonly see: 'files'; readonly pid: number; readonly open: number; readonly limit: number }

export function evaluateProcess(seen: ProcessSeen, settings: ProcessSettings): Result | readonly Result[] {
  switch (seen.see) {
    case 'running':
      return evaluateRunning(seen, settings)
    case 'count':
      return evaluateCount(seen.running, settings.count ?? {})
    case 'memory':
      return atMost({
        check: 'memory',
        what: `process ${seen.pid} holds`,
        value: seen.bytes,
        unit: 'bytes',
        threshold: settings.memory ?? {},
      })
    case 'cpu': {
      const { warn: low, limit } = settings.cpu ?? {}
      const bound = low ?? limit
      const threshold = bound === undefined ? {} : { warn: bound }
      return atMost({ check: 'cpu', what: 'of one processor', value: seen.percent, unit: 'percent', threshold })
    }
    case 'age':
      return atLeast({
        check: 'restarted',
        what: `process ${seen.pid} up`,
        value: seen.ms,
        unit: 'duration',
        threshold: settings.restarted,
      })
    case 'files':
      return atMost({
        check: 'open files',
        what: `process ${seen.pid} has ${seen.open} of ${seen.limit} open:`,
        value: (seen.open / seen.limit) * 100,
        unit: 'percent',
        threshold: settings.openFiles,
      })
  }
}

function evaluateRunning(
  { pids, zombies, details }: Extract<ProcessSeen, { see: 'running' }>,
  { count }: ProcessSettings,
): Result {
  const [first, ...others] = pids
  const dead = zombies > 0 ? [`${zombies} ended and not collected by the parent (zombie)`] : []
  if (first === undefined && (count?.min ?? 1) > 0) {
    return fail('running', 'data', ['not running', ...dead, ...details].join('; '), {
      measurement: { value: 0, unit: 'count' },
    })
  }
  const which = others.length > 0 ? ` and ${others.length} more` : ''
  const said = first === undefined ? 'none running, as allowed' : `running: process ${first}${which}`
  return ok('running', [said, ...dead].join('; '), { measurement: { value: pids.length, unit: 'count' } })
}

function evaluateCount(
  running: number,
  { min = 1, max }: { readonly min?: number; readonly max?: number | undefined },
): Result {
  const wanted = max === undefined ? `at least ${min}` : min === max ? `exactly ${min}` : `${min} to ${max}`
  const said = `${running} running (${wanted})`
  const limit = running < min ? min : (max ?? min)
  if (running < min || (max !== undefined && running > max)) {
    return fail('count', 'threshold', said, { measurement: { value: running, unit: 'count', limit } })
  }
  return ok('count', said, { measurement: { value: running, unit: 'count', limit } })
}
