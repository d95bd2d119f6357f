import { writeSync } from 'node:fs'
import { openData } from '../../../src/core/store/index.ts'
import { batchOf, fenceOf, nodesOf, stateOf, subjectOf } from './nodes.ts'

// Opens the store named by the first argument and stores a state of the key named by the fourth, as the node and the epoch
// named by the second and the third. Stops itself in the middle of the transaction: when it makes the text of the state, it
// has the locks. Says how the write ended.
const [store = '', node = '', epoch = '0', key = ''] = process.argv.slice(2)
const data = await openData({ store, create: false })
const nodes = nodesOf(data)
await nodes.list()
const state = {
  ...stateOf(subjectOf(key), 'of the frozen node'),
  toJSON: () => {
    writeSync(1, 'freezes\n')
    process.kill(process.pid, 'SIGSTOP')
    return stateOf(subjectOf(key), 'of the frozen node')
  },
}
const outcome = await nodes
  .writeStates(
    fenceOf({ node, process: `process of ${node}`, epoch: Number(epoch), writes: 0 }, 1),
    batchOf({ states: [state] }),
  )
  .catch((error: unknown) => (error instanceof Error ? error.message : 'unknown'))
writeSync(1, `${JSON.stringify(outcome)}\n`)
await data.close()
