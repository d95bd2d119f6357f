import { lazy } from '../base/lazy.ts'
import type { NodeRow } from '../watch/nodes/index.ts'
import { linkPostgres } from './postgres/link.ts'
import { memberOf, membersQuery } from './rows/node-rows.ts'

/**
 * The nodes of a PostgreSQL store whose schema is newer than this svc supports. Its table of nodes has the columns that
 * versions before need, because servers of these versions work on it until they end. Nothing is written. `list` rejects
 * while the rows cannot be read.
 */
export function nodesOfNewerStore(
  url: string,
  env: Readonly<Record<string, string | undefined>>,
): { readonly list: () => Promise<readonly NodeRow[]>; readonly close: () => Promise<void> } {
  const opened = lazy(async () => await linkPostgres({ url, env, create: false, asIs: true }))
  return {
    list: async () => {
      const { rows } = await (await opened.get()).read((db) => membersQuery.execute(db))
      return rows.map(memberOf)
    },
    close: async () => await (await opened.peek()?.catch(() => undefined))?.close(),
  }
}
