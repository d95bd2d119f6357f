import { appendFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

// Loaded before svc: writes every statement that it gives SQLite, with the file of its database and how many rows came back,
// into the file that SVC_TEST_ROWS names; one JSON value a line.
const file = process.env.SVC_TEST_ROWS ?? ''
const prepare = DatabaseSync.prototype.prepare
DatabaseSync.prototype.prepare = function (this: DatabaseSync, sql, ...more) {
  const statement = prepare.call(this, sql, ...more)
  const all = statement.all.bind(statement)
  const database = this.location()
  const note = (rows: number): void => appendFileSync(file, `${JSON.stringify({ database, sql, rows })}\n`)
  const run = statement.run.bind(statement)
  statement.all = ((...values: Parameters<typeof all>) => {
    const rows = all(...values)
    note(rows.length)
    return rows
  }) as typeof statement.all
  statement.run = ((...values: Parameters<typeof run>) => {
    note(0)
    return run(...values)
  }) as typeof statement.run
  return statement
}
