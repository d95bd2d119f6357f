import { readFileSync } from 'node:fs'

/** True when a process of that id runs, whoever owns it. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** When a process started, in ticks since the start of the system. Undefined where that is unknown. */
export function startTicks(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name is in parentheses and may contain any character.
    const ticks = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19])
    return Number.isFinite(ticks) ? ticks : undefined
  } catch {
    return undefined
  }
}

/**
 * Whether the process that noted its id and its start runs. A process id may be used again, and may be another one in a
 * container: on Linux the start of the process tells, which no clock that is set can change.
 */
export function isRunning({ pid, started }: { readonly pid: number; readonly started?: number | undefined }): boolean {
  if (!isAlive(pid)) return false
  const now = startTicks(pid)
  return now === undefined || started === undefined || now === started
}
