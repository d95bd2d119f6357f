/** Writes the results of the kind host, as this process sees its machine. */
import host from '../../src/core/kinds/host.ts'
import { runKind } from './run-kind.ts'

process.stdout.write(JSON.stringify(await runKind(host, {}, 'Standard')))
