import { type CheckContext, includes, type Result, warn } from '../engine/index.ts'
import type { ExecutionMode } from '../protocol/index.ts'
import type { Query } from './query-settings.ts'
import type { Column, Row } from './rows.ts'
import type { Ask, Read } from './session.ts'

/** What became of one question. */
export type Asked = {
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
    return { query, at: context.date().getTime(), column }
  } catch (cause) {
    if (context.signal.aborted) throw cause
    return { query, at: context.date().getTime(), cause, afterMs: context.now() - since }
  }
}

/** A cheap question about what an account may do beyond reading. */
export type AccountQuestion = {
  readonly sql: string
  /** What the answer means, in words that follow "queries run"; undefined where the account may only read. */
  readonly powers: (rows: readonly Row[]) => string | undefined
}

/** The answer to it: a hint only, so a server that does not say is no failure. The deadline is thrown. */
export async function readPowers(
  ask: Ask,
  { sql, powers }: AccountQuestion,
  { signal }: Pick<CheckContext, 'signal'>,
): Promise<string | undefined> {
  try {
    return powers(await ask(sql))
  } catch (error) {
    if (signal.aborted) throw error
    return undefined
  }
}

export const warnOfPowers = (powers: string): Result<'queries'> =>
  warn('queries', `queries run ${powers}: give svc an account that may only read`, {
    details: [
      'a transaction that cannot write keeps rows as they are, and no function from doing what its account may',
    ],
  })
