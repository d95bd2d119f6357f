import type { ChildProcess } from 'node:child_process'

/** Milliseconds that a killed process gets to be gone: one stuck in the kernel is not waited for. */
const graceMs = 300
const windows = process.platform === 'win32'

/** A file of Windows itself; the folder of them for an empty name. */
export const system32File = (name: string): string => `${process.env['SystemRoot'] ?? 'C:\\Windows'}\\System32\\${name}`

/** Kills a process that leads a group, and all that it has started: also what is left when it has ended. */
export function killGroup(child: ChildProcess): void {
  if (windows || child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // Nobody is left in it.
  }
}

/** Kills a process that has not ended, and all that it has started. */
export function killTree(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  if (windows) killWindowsTree(child)
  else killGroup(child)
}

/** The same, and also what a process that has ended by itself has left behind, where groups tell. */
export const killAll = (child: ChildProcess): void => (windows ? killTree(child) : killGroup(child))

/** Windows has no process groups: its own tool walks the tree. */
function killWindowsTree(child: ChildProcess): void {
  const { spawn } = process.getBuiltinModule('node:child_process')
  spawn(system32File('taskkill.exe'), ['/pid', String(child.pid), '/t', '/f'], { stdio: 'ignore', windowsHide: true })
    .on('error', () => child.kill('SIGKILL'))
    .unref()
}

/** Waits until a killed process is gone and reaped, but not for one that is stuck in the kernel. */
export async function reaped(child: ChildProcess, gone: Promise<void>): Promise<void> {
  if (child.pid === undefined) return
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, graceMs)
  await Promise.race([gone, late])
  clearTimeout(timer)
  // What is still there must not keep this process alive.
  child.unref()
  for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe?.destroy()
}
