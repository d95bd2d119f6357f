import { acquire } from '../../../src/cli/settings/private-file.ts'

/** Holds a lock until it is killed. */
await acquire(process.argv[2] ?? '', new AbortController().signal)
process.send?.('held')
setInterval(() => {}, 1_000)
