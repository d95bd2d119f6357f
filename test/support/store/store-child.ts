import { openStore } from '../../../src/core/store/index.ts'
import { manySteps } from './steps.ts'

// Opens the store named by the first argument with as many steps as the second says, then tells.
const [path = '', count = '1'] = process.argv.slice(2)
process.stdout.write('ready\n')
process.stdin.once('data', () => {
  const store = openStore({ path, create: true }, manySteps(Number(count)))
  const { createdAt } = store.database.prepare('SELECT createdAt FROM meta').get() as { createdAt: string }
  process.stdout.write(`${store.schemaVersion} ${createdAt}\n`)
  store.close()
  process.stdin.destroy()
})
