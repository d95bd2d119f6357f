import { readdirSync } from 'node:fs'
import type { KindName } from '../../../src/core/checks/kinds/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import type { Row as LeakRow } from '../../prove/leak-row.ts'
import type { CostRow } from './costs.ts'
import type { EndedRow, Settings } from './ended-connection.ts'

/** How a kind gets to a server on a port of this machine. Default: in Basic. */
export type SilentRow = { readonly mode?: ExecutionMode; readonly settings: (port: number, host: string) => Settings }

/** The rows of a kind in the tables that prove a rule for all kinds: the default export of `test/checks/kinds/KIND.rows.ts`. */
export type KindRows = {
  /** H21, or that the kind speaks over no TCP connection to a server of its own. */
  readonly silent: SilentRow | 'no TCP'
  /** H22, or that its checks share no session with a server. */
  readonly ended: readonly Omit<EndedRow, 'kind'>[] | 'no shared session'
  readonly leaks: LeakRow
  /** Absent: a run costs no server anything, or svc cannot state it. */
  readonly costs?: Omit<CostRow, 'kind'>
}

const folder = new URL('../../checks/kinds/', import.meta.url)
const ending = '.rows.ts'

const loaded = readdirSync(folder)
  .filter((file) => file.endsWith(ending))
  .map(async (file) => {
    const { default: rows } = (await import(new URL(file, folder).href)) as { readonly default: KindRows }
    return [file.slice(0, -ending.length), rows] as const
  })

/** The rows of the kinds that have such a file. The tables themselves contain those of the other kinds. */
export const kindRows = Object.fromEntries(await Promise.all(loaded)) as Readonly<Partial<Record<KindName, KindRows>>>

/** The kinds with such a file, in the form of a list. */
export const kindsWithRows = Object.entries(kindRows).map(([name, rows]) => ({ kind: name as KindName, ...rows }))
