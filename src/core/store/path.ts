import { type PlatformPath, posix, win32 } from 'node:path'
import { Fault } from '../errors.ts'

type Env = Readonly<Record<string, string | undefined>>

/**
 * Where the store lies: `SVC_STORE` (a file, or a postgres:// URL), else under `SVC_HOME`, else in the
 * platform's folder for an account's data. A file is always in a folder of its own, whose mode svc can
 * insist on. Throws Fault `Local`.
 */
export function storePathFor(env: Env, platform: NodeJS.Platform, home: string): string {
  const path = platform === 'win32' ? win32 : posix
  if (env.SVC_STORE) {
    if (storeKind(env.SVC_STORE) === 'postgres') return env.SVC_STORE
    if (!path.isAbsolute(env.SVC_STORE)) {
      throw new Fault('Local', 'SVC_STORE must be the whole path of a file', {
        hints: ['A relative one would name another store in every folder: begin it at the root.'],
      })
    }
    return env.SVC_STORE
  }
  if (env.SVC_HOME) return path.join(absolute(env.SVC_HOME, path), 'store', file)
  if (platform === 'win32') return path.join(env.LOCALAPPDATA || path.join(home, 'AppData', 'Local'), 'svc', file)
  if (platform === 'darwin') return path.join(home, 'Library', 'Application Support', 'svc', file)
  // The XDG specification: a relative path there is to be ignored.
  const data =
    env.XDG_DATA_HOME && path.isAbsolute(env.XDG_DATA_HOME) ? env.XDG_DATA_HOME : path.join(home, '.local', 'share')
  return path.join(data, 'svc', file)
}

const file = 'svc.db'

function absolute(home: string, path: PlatformPath): string {
  if (path.isAbsolute(home)) return home
  throw new Fault('Local', 'SVC_HOME must be the whole path of a folder', {
    hints: ['A relative one would name another folder everywhere: begin it at the root.'],
  })
}

const schemeOf = (store: string): string | undefined => /^([a-z][a-z0-9+.-]+):/i.exec(store)?.[1]?.toLowerCase()

/** Which kind of store is named. Throws Fault `Local` for another URL; it is not repeated: it may hold a password. */
export function storeKind(store: string): 'sqlite' | 'postgres' {
  const scheme = schemeOf(store)
  if (scheme === undefined) return 'sqlite'
  if (scheme === 'postgres' || scheme === 'postgresql') return 'postgres'
  throw new Fault('Local', `The store is a file or a postgres:// URL, and ${scheme}: is neither`, {
    hints: ['Set SVC_STORE to the whole path of a file, or leave it out.'],
  })
}

/** How a store is named to people: its path, or its URL with neither password nor parameters. */
export function shownStore(store: string): string {
  if (schemeOf(store) === undefined) return store
  if (!URL.canParse(store)) return `${schemeOf(store)}://…`
  const { protocol, username, host, pathname } = new URL(store)
  return `${protocol}//${username === '' ? '' : `${username}@`}${host}${pathname}`
}

/** Refuses what is not a path where only a path will do. */
export function refuseUrl(path: string): void {
  if (storeKind(path) === 'sqlite') return
  throw new Fault('Local', 'A file is wanted here, and a PostgreSQL store is named')
}
