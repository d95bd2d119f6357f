import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename, join } from 'node:path'
import type { FilePlace } from '../../core/base/errors.ts'
import { isFileOutage } from '../../core/base/file-errors.ts'
import { hasIdentity, identityOf, isAlive, isRunning, type ProcessIdentity } from '../../core/base/running-process.ts'
import { machine } from '../io/process.ts'
import { ownFolder, readPrivate, replaceFile } from '../settings/private-file.ts'

/** A `svc serve` of this account on this machine. */
export type RunningServe = {
  readonly pid: number
  readonly url: string
  readonly store: string
  /** True once a request has arrived through a proxy that nobody has declared. */
  readonly undeclaredProxy?: boolean | undefined
  /** The path of its svc.yaml. Undefined without one. */
  readonly configuration?: string | undefined
  /** Absent from one that does not reload. */
  readonly reloads?: Reloads | undefined
}

/** The reloads that a server was asked for since its start. */
export type Reloads = {
  /** The number of the latest one, which may be under way. 0 before the first. */
  readonly latest: number
  /** The last one that has ended, counted from 1. */
  readonly last?: (ReloadOutcome & { readonly number: number }) | undefined
}
export type ReloadOutcome = {
  /** `Type/MonitorName` */
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly string[]
  readonly warnings: readonly string[]
  /** Why everything is as before. Absent after a success. */
  readonly refusal?: ReloadRefusal | undefined
}
export type ReloadRefusal = {
  readonly message: string
  readonly hints: readonly string[]
  readonly places: readonly FilePlace[]
}

/**
 * The folder in which servers register: one per account, whatever SVC_HOME is, because a server may use *another*
 * store. Machines may share it with the home folder: each names its entries after itself, and reads no others.
 */
const folder = (home: string): string => join(home, '.cache', 'svc', 'running')

/** Tells machines that share a home folder apart, and containers of one machine, whose process ids mean different ones. */
function machineName(): string {
  const parts = [hostname(), read(() => readFileSync('/etc/machine-id')), read(() => readlinkSync('/proc/self/ns/pid'))]
  return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 16)
}

const read = (source: () => unknown): string => {
  try {
    return String(source())
  } catch {
    return ''
  }
}

/** The entry of a process of this machine. */
export const entryFile = (home: string, pid: number): string => join(folder(home), `${machineName()}-${pid}.json`)

/** A process, as its entry describes it. Throws if its identity cannot be read: nobody would believe the entry. */
function signed<T extends { readonly pid: number }>(entry: T): T & Partial<ProcessIdentity> {
  const identity = identityOf(entry.pid)
  if (!identity && machine.platform !== 'win32') throw new Error(`the process ${entry.pid} cannot be identified`)
  return { ...entry, ...identity }
}

/**
 * Registers a server. Returns a function that removes the entry. Ignores a home folder that is not writable or not its own.
 * Throws the error of a file system that is full, read-only or out of order.
 */
export function announce(serve: RunningServe, home: string): () => void {
  const file = entryFile(home, serve.pid)
  try {
    ownFolder(folder(home))
    // Whole at any time: others read it meanwhile.
    replaceFile(file, JSON.stringify(signed(serve)), 0o600)
  } catch (error) {
    if (isFileOutage(error)) throw error
    return () => {}
  }
  return () => rmSync(file, { force: true })
}

/** The servers of this machine. Entries of those that have ended are removed. */
export const servesHere = (home: string): readonly RunningServe[] => entriesHere(home).serves

/** The servers of this machine, and why entries are not believed: others could have written them. */
export function entriesHere(home: string): {
  readonly serves: readonly RunningServe[]
  /** Those of earlier versions of svc, whose entries identify neither the process nor its machine: none gets a signal. */
  readonly earlier: readonly RunningServe[]
  readonly ignored: readonly string[]
} {
  const serves: RunningServe[] = []
  const earlier: RunningServe[] = []
  const ignored: string[] = []
  // Made only where there is an entry: it needs node:crypto.
  let own: string | undefined
  const isOwn = (one: string): boolean => {
    own ??= `${machineName()}-`
    return one.startsWith(own)
  }
  for (const name of namesIn(folder(home), (one) => isEarlier(one) || isOwn(one))) {
    const file = join(folder(home), name)
    try {
      const serve = serveIn(file)
      if (serve) (isEarlier(name) ? earlier : serves).push(serve)
      // It may be of a server of another machine.
      else if (!isEarlier(name)) rmSync(file, { force: true })
    } catch (error) {
      ignored.push(error instanceof Error ? error.message : String(error))
    }
  }
  return { serves, earlier, ignored }
}

const isEarlier = (name: string): boolean => /^\d+\.json$/.test(name)

function namesIn(path: string, counts: (name: string) => boolean): readonly string[] {
  try {
    return readdirSync(path)
      .filter((name) => name.endsWith('.json') && counts(name))
      .slice(0, 100)
  } catch {
    return []
  }
}

/** The server with a process id, as it is registered now. Undefined once it has ended. Throws as `readPrivate`. */
export const serveWithId = (pid: number, home: string): RunningServe | undefined => serveIn(entryFile(home, pid))

/** The question of a command to a server. */
export type ReloadRequest = {
  /** Accepts that patterns of `include:` match nothing any more. */
  readonly emptyInclude: boolean
}

/** The place of the request to a server. */
export const requestFile = (home: string, pid: number): string => entryFile(home, pid).replace(/json$/, 'request')

/** Asks a server to reload. It finds the request sooner than in a second. Throws file system errors. */
export const leaveRequest = (pid: number, home: string, request: ReloadRequest): void =>
  replaceFile(requestFile(home, pid), JSON.stringify(signed({ ...request, pid: machine.pid })), 0o600)

/** The request of a command of this account that still waits. Removes it. Undefined without one. */
export function takeRequest(home: string): ReloadRequest | undefined {
  const file = requestFile(home, machine.pid)
  try {
    const request: Partial<RunningServe & ProcessIdentity & ReloadRequest> = processIn(file)
    // One that stays would ask again.
    rmSync(file, { force: true })
    return isOf(request) ? { emptyInclude: request.emptyInclude === true } : undefined
  } catch {
    return undefined
  }
}

/** Those that use another store: one with `--only health` has none. */
export const servesOfOtherStores = (store: string, home: string): readonly RunningServe[] =>
  servesHere(home).filter((serve) => serve.store !== store && serve.store !== 'none')

/** The content of a file that this account alone can write. Throws Fault `Local` for a file of others. */
function processIn(file: string): Partial<RunningServe & ProcessIdentity> {
  const text = readPrivate(file, 'unreadable')
  try {
    const value: unknown = JSON.parse(text ?? '')
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

/** Whether a process is the one that wrote this of itself, and belongs to this account: nobody signals another one. */
function isOf({ pid, uid, started, command }: Partial<RunningServe & ProcessIdentity>): boolean {
  if (!Number.isSafeInteger(pid) || Number(pid) < 1) return false
  const id = Number(pid)
  if (machine.platform === 'win32') return isAlive(id)
  if (uid === undefined || uid !== machine.accountId() || started === undefined || command === undefined) return false
  return hasIdentity(id, { uid, started, command })
}

/** Whether a process may be that of an entry of an earlier version, which has its start alone, and only on Linux. */
const isProbably = ({ pid = 0, started }: Partial<RunningServe & ProcessIdentity>): boolean =>
  isRunning({ pid, started: started === undefined ? undefined : Number(started) }) &&
  identityOf(pid)?.uid === machine.accountId()

/** The server of an entry. Undefined for another file, and for a server that has ended. */
function serveIn(file: string): RunningServe | undefined {
  const entry = processIn(file)
  const { pid, url, store, undeclaredProxy, configuration, reloads } = entry
  if (pid === undefined || typeof url !== 'string' || !URL.canParse(url) || typeof store !== 'string') return undefined
  const name = basename(file)
  const isFound = isEarlier(name)
    ? name === `${pid}.json` && isProbably(entry)
    : name.endsWith(`-${pid}.json`) && isOf(entry)
  if (!isFound) return undefined
  return { pid, url, store, undeclaredProxy: undeclaredProxy === true, configuration, reloads }
}

/** The warning that a change here does not affect the users of a running server, or nothing (P8). */
export function otherStoreWarning(store: string, home: string): string | undefined {
  const [other] = servesOfOtherStores(store, home)
  return other && `Warning: the svc serve at ${other.url} uses another store: ${other.store}`
}
