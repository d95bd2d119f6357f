import { writeSync } from 'node:fs'
import { openStore } from '../../src/core/store/index.ts'

// Commits one row after another to the store named by the first argument, as many as the second
// says, and acknowledges each only when its commit has returned.
const [path = '', count = '0'] = process.argv.slice(2)
const { database, close } = openStore({ path, create: true })
database.exec('CREATE TABLE IF NOT EXISTS acknowledged (n INTEGER PRIMARY KEY)')
const insert = database.prepare('INSERT INTO acknowledged DEFAULT VALUES RETURNING n')
for (let row = 0; row < Number(count); row += 1) {
  database.exec('BEGIN IMMEDIATE')
  const { n } = insert.get() as { n: number }
  database.exec('COMMIT')
  writeSync(1, `${n}\n`)
}
close()
