import { existsSync, mkdirSync, readFileSync, type Stats } from 'node:fs'
import { dirname, resolve } from 'node:path'

/**
 * Makes a folder and its missing parents, accessible to this account only (0700). Throws file system errors. Does not
 * use `mkdir` with `recursive`: below /proc and similar file systems, where folders cannot be made, Node retries
 * forever.
 */
export function makeFolder(path: string): void {
  const missing: string[] = []
  for (let at = resolve(path); !existsSync(at) && at !== dirname(at); at = dirname(at)) missing.push(at)
  for (const folder of missing.reverse()) {
    try {
      mkdirSync(folder, { mode: 0o700 })
    } catch (error) {
      // Another process may have made it in the meantime.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}

/**
 * Whether anyone but the owner may write to a file or folder, by its mode. A group that only the owner has does not
 * count: with umask 002, which Debian and Fedora set for such groups, every new file is writable for it.
 *
 * The members of a group come from /etc/passwd and /etc/group. A group that is not in these files, or that an account
 * outside them might have, counts as shared. Always false on Windows, where access lists take the place of modes.
 */
export function othersMayWrite(
  stats: Pick<Stats, 'mode' | 'uid' | 'gid'>,
  files: AccountFiles = systemAccounts,
): boolean {
  if (process.platform === 'win32' || (stats.mode & 0o022) === 0) return false
  return (stats.mode & 0o002) !== 0 || !isPrivateGroup(stats, files)
}

/** The texts of /etc/passwd and /etc/group. A reader throws when its file cannot be read. */
export type AccountFiles = { readonly passwd: () => string; readonly group: () => string }
export const systemAccounts: AccountFiles = {
  passwd: () => readFileSync('/etc/passwd', 'utf8'),
  group: () => readFileSync('/etc/group', 'utf8'),
}

/** Whether the group is the primary group of the owner and of nobody else, bears its name, and has no other member. */
function isPrivateGroup({ uid, gid }: Pick<Stats, 'uid' | 'gid'>, files: AccountFiles): boolean {
  try {
    const accounts = rows(files.passwd()).map(([name = '', , id, group]) => ({ name, id, group }))
    const owners = accounts.filter(({ group }) => group === String(gid))
    const groups = rows(files.group()).filter(([, , id]) => id === String(gid))
    const [owner] = owners
    const [group] = groups
    if (owners.length !== 1 || groups.length !== 1 || !owner || !group) return false
    const [name, , , members = ''] = group
    const others = members.split(',').filter((member) => member !== '' && member !== owner.name)
    return owner.id === String(uid) && name === owner.name && others.length === 0
  } catch {
    return false
  }
}

/**
 * The name of an account of this machine. Undefined if /etc/passwd does not list it.
 *
 * @example
 * ```ts
 * accountNamed(33, { passwd: () => 'www-data:x:33:33::/var/www:/bin/sh' }) // 'www-data'
 * ```
 */
export function accountNamed(uid: number, files: Pick<AccountFiles, 'passwd'> = systemAccounts): string | undefined {
  try {
    return rows(files.passwd()).find(([, , id]) => id === String(uid))?.[0]
  } catch {
    return undefined
  }
}

/**
 * The home folder of an account of this machine, an absolute path. Undefined if /etc/passwd does not list it.
 *
 * @example
 * ```ts
 * homeFolderOf('www-data', { passwd: () => 'www-data:x:33:33::/var/www:/bin/sh' }) // '/var/www'
 * ```
 */
export function homeFolderOf(
  account: string,
  files: Pick<AccountFiles, 'passwd'> = systemAccounts,
): string | undefined {
  try {
    const home = rows(files.passwd()).find(([name]) => name === account)?.[5]
    return home?.startsWith('/') ? home : undefined
  } catch {
    return undefined
  }
}

const rows = (text: string): readonly (readonly string[])[] => text.split('\n').map((line) => line.split(':'))
