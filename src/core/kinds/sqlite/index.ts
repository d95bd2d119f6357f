import { queriesProblem } from '../../database/index.ts'
import { machineKind } from '../../engine/index.ts'
import { backup, disk, open, ownStoreSetting, queries, query, quickCheck, roundTrip, schema, wal } from './checks.ts'
import { closeFile, openFile } from './file.ts'

/** Reads; in Advanced also writes in a transaction that is always taken back. */
export default machineKind({
  name: 'sqlite',
  title: 'A SQLite database can be used, and is sound',
  settings: {
    path: { type: 'text', required: true, doc: 'The whole path of the database file' },
    ownStore: ownStoreSetting,
  },
  target: ({ path }) => ({ database: path }),
  validate: (settings) => queriesProblem(settings.queries, 'sqlite'),
  open: openFile,
  close: closeFile,
  checks: [open, query, wal, schema, disk, roundTrip, quickCheck, backup, queries],
})
