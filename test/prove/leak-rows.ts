import { kindsWithRows } from '../support/engine/kind-rows.ts'
import type { Row } from './leak-row.ts'
import { databaseRows } from './leak-rows-databases.ts'
import { machineRows } from './leak-rows-machine.ts'
import { signInRows } from './leak-rows-sign-in.ts'
import { webRows } from './leak-rows-web.ts'

/** The proof of each kind. */
export const rows: Readonly<Record<string, Row>> = {
  ...webRows,
  ...databaseRows,
  ...signInRows,
  ...machineRows,
  ...Object.fromEntries(kindsWithRows.map(({ kind, leaks }) => [kind, leaks])),
}
