import { ExecutionMode, type ServerType } from '../protocol/index.ts'
import { type EntryReading, type Level, read } from '../reports/index.ts'
import type { RecentRun } from '../service.ts'
import { entryOf } from './entries.ts'

/** Where one server type stands, by its latest runs. */
export type Standing = {
  readonly type: ServerType
  /** Undefined: no run yet. */
  readonly level: Level | undefined
  /** The run that says so: the newest of the worst that still counts. */
  readonly telling: EntryReading | undefined
  /** The latest run of each mode, shallowest first. */
  readonly runs: readonly {
    readonly mode: ExecutionMode
    readonly ageSeconds: number
    readonly reading: EntryReading
  }[]
}

const worstFirst: readonly Level[] = ['fail', 'warn', 'ok']

/**
 * Judges a type by its latest runs, newest first. A run counts until a newer one looked at least as
 * deep: a Basic run that passes does not take back what an Advanced run found.
 */
export function standingOf(type: ServerType, recent: readonly RecentRun[], target: string): Standing {
  const own = recent
    .filter((run) => run.type === type)
    .toSorted((a, b) => a.ageSeconds - b.ageSeconds)
    .map((run) => ({ mode: run.mode, ageSeconds: run.ageSeconds, reading: read(entryOf(run, target)) }))
  const depth = (mode: ExecutionMode): number => ExecutionMode.values.indexOf(mode)
  const counting = own.filter((run, i) => own.slice(0, i).every((newer) => depth(newer.mode) < depth(run.mode)))
  const level = worstFirst.find((candidate) => counting.some(({ reading }) => reading.level === candidate))
  return {
    type,
    level,
    telling: counting.find(({ reading }) => reading.level === level)?.reading,
    runs: own.toSorted((a, b) => depth(a.mode) - depth(b.mode)),
  }
}
