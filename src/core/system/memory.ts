import { freemem, totalmem } from 'node:os'
import type { MemoryLimit, OwnLimits } from './cgroup.ts'
import { loadSystemInformation } from './listing.ts'

/** Bytes. */
export type Memory = { readonly total: number; readonly available: number }

/**
 * The machine's memory, or the container's where it is tighter. On Linux and Windows `os.freemem`
 * is what programs may still take (MemAvailable, ullAvailPhys). On macOS it counts free pages only.
 */
export const memory = (limit: MemoryLimit | undefined): Memory =>
  within({ total: totalmem(), available: freemem() }, limit)

/** The same for a monitor, which may wait: on macOS with the pages that the system would give back. */
export async function hostMemory(limits: OwnLimits): Promise<Memory> {
  if (process.platform !== 'darwin') return memory(limits.memory())
  const system = await loadSystemInformation()
  const { total, available } = await system.mem()
  return { total, available }
}

/** A container cannot take more than its limit leaves, nor more than the machine has. */
export function within(machine: Memory, limit: MemoryLimit | undefined): Memory {
  if (limit === undefined || limit.limit >= machine.total) return machine
  return { total: limit.limit, available: Math.min(limit.available, machine.available) }
}
