import { type CheckContext, includes } from '../engine/index.ts'
import { ProbeError } from '../probe-error.ts'
import type { ExecutionMode } from '../protocol/index.ts'
import type { Column } from './column.ts'
import type { Query } from './query-settings.ts'
import { type Read, statementMs } from './session.ts'

/** What became of one question. */
export type Asked = {
  readonly see: 'asked'
  readonly query: Query
  /** Milliseconds since 1970, by our clock. */
  readonly at: number
} & ({ readonly column: Column } | { readonly cause: unknown; readonly afterMs: number })

/** Those that are asked in a mode. */
export const wanted = (queries: readonly Query[] = [], mode: ExecutionMode): readonly Query[] =>
  queries.filter(({ depth }) => includes(mode, depth === 'Advanced' ? 'Advanced' : 'Standard'))

/** Asks one. What goes wrong is seen as well, so that it hides no other; only the deadline is thrown. */
export async function askQuery(
  query: Query,
  context: Pick<CheckContext, 'now' | 'date' | 'signal'>,
  read: Read,
): Promise<Asked> {
  const since = context.now()
  try {
    const column = await read(query.sql, query.age !== undefined)
    return { see: 'asked', query, at: context.date().getTime(), column }
  } catch (cause) {
    if (context.signal.aborted) throw cause
    return { see: 'asked', query, at: context.date().getTime(), cause, afterMs: context.now() - since }
  }
}

/** Milliseconds that are kept from a query: it is to be ended, and named, before the deadline names nothing. */
const keptMs = 300
const leastMs = 50

/** Milliseconds for one query. Throws ProbeError `timeout` where too few are left. */
export function queryMs(left: number): number {
  const ms = Math.min(statementMs(left), left - keptMs)
  if (ms < leastMs) throw new ProbeError('timeout', 'not asked: the time of this monitor was used up before it')
  return ms
}

/** The connection did not outlive what was asked before. */
export const notAsked = (): ProbeError => new ProbeError('dependency', 'not asked: the connection had ended before it')

/** It took longer than it may, and was ended. */
export const calledOff = (): ProbeError => new ProbeError('timeout', 'the query was called off: it took too long')
