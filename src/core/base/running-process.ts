import { createHash } from 'node:crypto'
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

/** The facts that distinguish a process from a later one with the same id. */
export type ProcessIdentity = {
  /** The number of its account. */
  readonly uid: number
  /** When it started, in a form that is equal only for the same instant. */
  readonly started: string
  /** A digest of its command line, which may be long. */
  readonly command: string
}

/** The identity of a process. Undefined where there is no such process, or nothing that tells: on Windows. */
export function identityOf(pid: number, platform: NodeJS.Platform = process.platform): ProcessIdentity | undefined {
  if (platform === 'win32') return undefined
  try {
    if (platform !== 'linux') return identityInPs(ps(pid))
    const uid = Number(/^Uid:\t\d+\t(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
    const started = startTicks(pid)
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    return Number.isNaN(uid) || started === undefined
      ? undefined
      : { uid, started: `${started}`, command: digest(command) }
  } catch {
    return undefined
  }
}

/** Whether a process still is the one with this identity. */
export function hasIdentity(pid: number, { uid, started, command }: ProcessIdentity): boolean {
  const now = identityOf(pid)
  return now?.uid === uid && now.started === started && now.command === command
}

/** In the time zone and language that do not depend on who asks. */
function ps(pid: number): string {
  const { execFileSync } = process.getBuiltinModule('node:child_process')
  const env = { LC_ALL: 'C', TZ: 'UTC' }
  const args = ['-ww', '-o', 'uid=', '-o', 'lstart=', '-o', 'command=', '-p', `${pid}`]
  return execFileSync('/bin/ps', args, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 5_000 })
}

/**
 * The identity in a line of `ps -o uid= -o lstart= -o command=`.
 *
 * @example
 * ```ts
 * identityInPs('  501 Sun Nov 29 06:30:44 2026     node svc serve')?.uid // 501
 * ```
 */
export function identityInPs(text: string): ProcessIdentity | undefined {
  const [, uid, started, command] = /^\s*(\d+) +(\w+ +\w+ +\d+ +[\d:]+ +\d{4}) +(\S.*)/.exec(text) ?? []
  if (uid === undefined || started === undefined || command === undefined) return undefined
  return { uid: Number(uid), started: started.replaceAll(/ +/g, ' '), command: digest(command) }
}

const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32)
