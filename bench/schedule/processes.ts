/** The resources that processes and the machine use, as the kernel of Linux counts them. */
import { readdirSync, readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { descendantsOf } from '../../test/support/servers/process-tree.ts'

/** The unit of processor time in /proc: a hundredth of a second. */
const tickMs = 10

const fieldsOf = (pid: number): readonly string[] => {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  // The name before the fields may contain anything.
  return text.slice(text.lastIndexOf(')') + 2).split(' ')
}

function sumOver(pids: readonly number[], of: (pid: number) => number): number {
  let sum = 0
  for (const pid of pids) {
    try {
      sum += of(pid)
    } catch {
      // It has ended.
    }
  }
  return sum
}

/** These processes with all that they started. */
export const trees = (pids: readonly number[]): readonly number[] => pids.flatMap((pid) => [pid, ...descendantsOf(pid)])

/** Milliseconds of processor time so far, with those of their children that have ended. */
export const processorTime = (pids: readonly number[]): number =>
  sumOver(pids, (pid) => {
    const [user, system, endedUser, endedSystem] = fieldsOf(pid).slice(11, 15).map(Number)
    return ((user ?? 0) + (system ?? 0) + (endedUser ?? 0) + (endedSystem ?? 0)) * tickMs
  })

/** Bytes. */
export const residentMemory = (pids: readonly number[]): number =>
  sumOver(pids, (pid) => Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1_024)

/** The descriptors that the process with the most of them has open. */
export const descriptors = (pids: readonly number[]): number =>
  Math.max(0, ...pids.map((pid) => sumOver([pid], (one) => readdirSync(`/proc/${one}/fd`).length)))

/** How many descriptors a process may have open. */
export const descriptorLimit = (pid: number): number =>
  Number(/^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.[1])

/** Connections of this machine that are closed, and whose ports wait until no packet of theirs can come any more. */
export const closedConnections = (): number =>
  Number(/^TCP: .* tw (\d+)/m.exec(readFileSync('/proc/net/sockstat', 'utf8'))?.[1] ?? 0)

/** Milliseconds that the processors of the machine have had nothing to do, and all milliseconds. */
export function idleTime(): { readonly idle: number; readonly all: number } {
  const times = cpus().map((one) => one.times)
  const idle = times.reduce((sum, one) => sum + one.idle, 0)
  return { idle, all: times.reduce((sum, { user, nice, sys, irq }) => sum + user + nice + sys + irq, idle) }
}
