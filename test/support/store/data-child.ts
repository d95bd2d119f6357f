import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { openData, storeKind } from '../../../src/core/store/index.ts'
import { changes } from './role-changes.ts'

// Opens the store named by the first argument and changes the roles of the user named by the second, as
// often as the third says, one change after the other. Says `begin ID` before each and `done ID` after its
// commit; the fourth argument begins the ids. With `meet` as the fifth it waits, after its first change
// and half-way, for the command to continue. Without a user it only opens the store.
const [store = '', userName = '', count = '0', prefix = `r${process.pid}`, meet] = process.argv.slice(2)
const meetings = meet === 'meet' ? [`${prefix}-0`, `${prefix}-${Math.floor(Number(count) / 2)}`] : []
await import('../../../src/core/store/data-over.ts')
if (storeKind(store) === 'sqlite') await import('../../../src/core/store/sqlite-link.ts')
else await import('../../../src/core/store/postgres/link.ts')
// Not process.stdout: the output must be written before anything else happens.
const say = (line: string): void => void writeSync(1, `${line}\n`)
say('ready')
process.stdin.once('data', async () => {
  const data = await openData({ store, create: true })
  const user = userName === '' ? undefined : await data.users.find(userName)
  if (user) {
    for (const { id, change } of changes(prefix, Number(count), user.roles)) {
      say(`begin ${id}`)
      await data.users.changeGrants(user.id, change, { who: 'local:child', correlationId: id })
      say(`done ${id}`)
      if (meetings.includes(id)) await once(process.stdin, 'data')
    }
  }
  await data.close()
  say('closed')
  process.stdin.destroy()
})
