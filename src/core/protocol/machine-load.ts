import type { RunMonitor } from './run-document.ts'

/**
 * The measures of the load of a machine: the one list of them. How busy a machine is says nothing about a server on it,
 * and a backup at night fills its memory every day. So they are shown with the machine, and colour no server type, no
 * answer and no exit code (M15).
 */
export const loadMeasures = ['load', 'cpu', 'memory', 'swap'] as const

/** Whether a check of the host block measures the load of its machine. */
export const isLoadMeasure = (check: string): boolean => loadMeasures.some((measure) => measure === check)

/**
 * Whether a result of a monitor is about the load of the machine. A host block that is the only monitor of a type
 * belongs to that type, as all its checks do (K10). The `brief` view does not say which of the two it is.
 */
export const isLoadOf = ({ kind, host = kind === 'host' }: Pick<RunMonitor, 'kind' | 'host'>, check: string): boolean =>
  host && kind === 'host' && isLoadMeasure(check)

/** How a monitor of the host block is called, as everywhere: a subject of such a monitor has no type. */
type Named = { readonly type?: string | undefined; readonly monitor: string; readonly check: string }

/** Whether a subject is about the load of a machine, as people are notified about it. */
export const isLoadSubject = ({ type, monitor, check }: Named): boolean =>
  type === undefined && monitor === 'host' && isLoadMeasure(check)
