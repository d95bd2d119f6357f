import type { ChildProcess } from 'node:child_process'

/** Milliseconds that a killed process gets to disappear. One stuck in the kernel is not waited for. */
const graceMs = 300
const windows = process.platform === 'win32'

/** The path of a Windows system file, or of their folder for an empty name. */
export const system32File = (name: string): string => `${process.env['SystemRoot'] ?? 'C:\\Windows'}\\System32\\${name}`

/** Kills the process group of a child, including members that outlive the child. */
export function killGroup(child: ChildProcess): void {
  if (windows || child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // The group is empty.
  }
}

/** Kills a running process and its children. */
export function killTree(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  if (windows) killWindowsTree(child)
  else killGroup(child)
}

/** The same, and also the children of a process that has ended by itself, on systems with process groups. */
export const killAll = (child: ChildProcess): void => (windows ? killTree(child) : killGroup(child))

/** Windows has no process groups, so its own tool kills the process tree. */
function killWindowsTree(child: ChildProcess): void {
  const { spawn } = process.getBuiltinModule('node:child_process')
  spawn(system32File('taskkill.exe'), ['/pid', String(child.pid), '/t', '/f'], { stdio: 'ignore', windowsHide: true })
    .on('error', () => child.kill('SIGKILL'))
    .unref()
}

/** Waits until a killed process has been reaped, but not for one that is stuck in the kernel. */
export async function reaped(child: ChildProcess, gone: Promise<void>): Promise<void> {
  if (child.pid === undefined) return
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, graceMs)
  await Promise.race([gone, late])
  clearTimeout(timer)
  // A remaining process must not keep this one alive.
  child.unref()
  for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe?.destroy()
}
