import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { FilePlace } from '../../core/errors.ts'
import { makeFolder } from '../../core/own-files.ts'
import { isRunning, startTicks } from '../../core/running-process.ts'
import { replaceFile } from '../settings/private-file.ts'

/** A `svc serve` of this account on this machine. */
export type RunningServe = {
  readonly pid: number
  readonly url: string
  readonly store: string
  /** True once a request has arrived through a proxy that nobody has declared. */
  readonly undeclaredProxy?: boolean | undefined
  /** The path of its svc.yaml. Undefined without one. */
  readonly configuration?: string | undefined
  /** Absent from one that SIGHUP ends, because it was started on a terminal, and from one of an earlier version. */
  readonly reloads?: Reloads | undefined
}

/** The reloads of a server since its start. */
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
 * store. Its content only ever causes a warning.
 */
const folder = (home: string): string => join(home, '.cache', 'svc', 'running')

/** Registers a server. Returns a function that removes the entry. Ignores a home folder that is not writable. */
export function announce(serve: RunningServe, home: string): () => void {
  const file = join(folder(home), `${serve.pid}.json`)
  try {
    makeFolder(folder(home))
    // Whole at any time: others read it meanwhile.
    replaceFile(file, JSON.stringify({ ...serve, started: startTicks(serve.pid) }), 0o600)
  } catch {
    return () => {}
  }
  return () => rmSync(file, { force: true })
}

/** The servers running here. Entries of those that have ended are removed. */
export function servesHere(home: string): readonly RunningServe[] {
  let names: readonly string[]
  try {
    names = readdirSync(folder(home))
  } catch {
    return []
  }
  return names
    .filter((name) => name.endsWith('.json'))
    .slice(0, 100)
    .flatMap((name) => {
      const file = join(folder(home), name)
      const serve = parsed(file)
      if (serve) return [serve]
      rmSync(file, { force: true })
      return []
    })
}

/** The server with a process id, as it is registered now. Undefined once it has ended. */
export const serveWithId = (pid: number, home: string): RunningServe | undefined =>
  parsed(join(folder(home), `${pid}.json`))

/** Those that use another store. */
export const servesOfOtherStores = (store: string, home: string): readonly RunningServe[] =>
  servesHere(home).filter((serve) => serve.store !== store)

type Registered = RunningServe & { readonly started?: number }

/** The server of a file. Undefined for another file, and for a server that has ended. */
function parsed(file: string): RunningServe | undefined {
  try {
    const registered = JSON.parse(readFileSync(file, 'utf8')) as Partial<Registered>
    const { pid, url, store, undeclaredProxy, configuration, started, reloads } = registered
    if (!Number.isSafeInteger(pid) || Number(pid) < 1 || typeof url !== 'string' || typeof store !== 'string')
      return undefined
    const id = Number(pid)
    if (!isRunning({ pid: id, started })) return undefined
    return { pid: id, url, store, undeclaredProxy: undeclaredProxy === true, configuration, reloads }
  } catch {
    return undefined
  }
}

/** The warning that a change here does not affect the users of a running server, or nothing (P8). */
export function otherStoreWarning(store: string, home: string): string | undefined {
  const [other] = servesOfOtherStores(store, home)
  return other && `Warning: the svc serve at ${other.url} uses another store: ${other.store}`
}
