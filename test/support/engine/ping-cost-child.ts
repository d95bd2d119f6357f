/** Writes how many echo requests the kernel has received for each run of ping, in a network namespace of its own. */
import { readFileSync } from 'node:fs'
import ping from '../../../src/core/checks/kinds/ping/index.ts'
import { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { runKind } from './run-kind.ts'

/** The figure `InEchos` of `Icmp`: the names are in one line, the values in the next. */
function echoes(): number {
  const [names = [], values = []] = readFileSync('/proc/net/snmp', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('Icmp:'))
    .map((line) => line.split(' '))
  return Number(values[names.indexOf('InEchos')])
}

const counted: number[] = []
for (const count of [5, 3]) {
  for (const mode of ExecutionMode.values) {
    const before = echoes()
    await runKind(ping, { host: '127.0.0.1', count }, mode)
    counted.push(echoes() - before)
  }
}
process.stdout.write(JSON.stringify(counted))
