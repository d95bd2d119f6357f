import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../../core/own-files.ts'
import { machine } from '../io/process.ts'

/** A `svc serve` of this account on this machine. */
export type RunningServe = {
  readonly pid: number
  readonly url: string
  readonly store: string
  /** True once a request has arrived through a proxy that nobody has declared. */
  readonly undeclaredProxy?: boolean | undefined
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
    writeFileSync(file, JSON.stringify(serve), { mode: 0o600 })
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
  return names.slice(0, 100).flatMap((name) => {
    const file = join(folder(home), name)
    const serve = parsed(file)
    if (serve && machine.isRunning(serve.pid)) return [serve]
    rmSync(file, { force: true })
    return []
  })
}

/** Those that use another store. */
export const servesOfOtherStores = (store: string, home: string): readonly RunningServe[] =>
  servesHere(home).filter((serve) => serve.store !== store)

function parsed(file: string): RunningServe | undefined {
  try {
    const { pid, url, store, undeclaredProxy } = JSON.parse(readFileSync(file, 'utf8')) as Partial<RunningServe>
    return Number.isSafeInteger(pid) && typeof url === 'string' && typeof store === 'string'
      ? { pid: Number(pid), url, store, undeclaredProxy: undeclaredProxy === true }
      : undefined
  } catch {
    return undefined
  }
}

/** The warning that a change here does not affect the users of a running server, or nothing (P8). */
export function otherStoreWarning(store: string, home: string): string | undefined {
  const [other] = servesOfOtherStores(store, home)
  return other && `Warning: the svc serve at ${other.url} uses another store: ${other.store}`
}
