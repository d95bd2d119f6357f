import { lstatSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type AccountFiles, homeFolderOf, localWay, systemAccounts, untrustedPlaces } from '../base/own-files.ts'
import { refuseSilentShare, shownStore, storeKind, storePathFor } from './path.ts'

/** The store that the systemd unit `svc.service` of this machine uses. */
export type ServiceStore = {
  readonly account: string
  /** As shown to people: the path of a file that exists, or a URL without its password. */
  readonly store: string
  /**
   * The environment variables that a command of this account needs to use the same store, as in `SVC_HOME=/srv/svc`.
   */
  readonly variables: readonly string[]
}

/** Where the units and the accounts are read. Tests name a folder of their own in place of `/`. */
export type UnitSystem = {
  readonly root: string
  /** The only account whose files are read. */
  readonly owner: number
  readonly accounts: Pick<AccountFiles, 'passwd'>
}
const thisSystem: UnitSystem = { root: '/', owner: 0, accounts: systemAccounts }

/** Where systemd looks for units. An earlier folder takes precedence. */
const unitFolders = [
  'etc/systemd/system',
  'run/systemd/system',
  'usr/local/lib/systemd/system',
  'usr/lib/systemd/system',
]
const unit = 'svc.service'
const maxUnitBytes = 65_536

/**
 * The store of `svc.service`, by the unit and its drop-ins. Reads only files that no account but root can change, and
 * opens nothing in the folders of the service. Undefined without such a unit, for one that runs as root, and where its
 * store does not exist yet. Throws Fault `Local` for a store on a share that does not answer.
 */
export async function storeOfService(system: UnitSystem = thisSystem): Promise<ServiceStore | undefined> {
  const settings = settingsOf(system)
  const account = settings?.user
  if (settings === undefined || account === undefined || account === 'root' || !accountName.test(account)) return
  const home = homeFolderOf(account, system.accounts)
  const { SVC_STORE, SVC_HOME, XDG_DATA_HOME } = settings.environment
  const env = { SVC_STORE: settings.store ?? SVC_STORE, SVC_HOME, XDG_DATA_HOME }
  const variables = Object.entries(env).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${shownStore(value)}`],
  )
  if (home === undefined || variables.some((text) => text.includes(unknown))) return
  const store = storePathFor(env, 'linux', home)
  if (storeKind(store) === 'sqlite') {
    await refuseSilentShare(store)
    if (isAbsent(join(system.root, store))) return
  }
  return { account, store: shownStore(store), variables }
}

/** Names that a shell takes as they are. */
const accountName = /^[A-Za-z_][A-Za-z0-9_.-]*$/

/** A file that this account must not see may exist. */
function isAbsent(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) === undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOTDIR'
  }
}

type UnitSettings = {
  readonly user: string | undefined
  readonly environment: Readonly<Record<string, string | undefined>>
  /** The store of the command line. */
  readonly store: string | undefined
}

function settingsOf(system: UnitSystem): UnitSettings | undefined {
  const folders = unitFolders.map((folder) => join(system.root, folder))
  const main = folders.map((folder) => join(folder, unit)).find((path) => !isAbsent(path))
  // A masked unit is a link to /dev/null.
  const text = main === undefined ? undefined : trustedText(main, system)
  if (text === undefined) return undefined
  let user: string | undefined
  let store: string | undefined
  let environment: Record<string, string> = {}
  for (const [name, value] of [text, ...dropIns(folders, system)].flatMap(serviceLines)) {
    if (name === 'User') user = value || undefined
    if (name === 'ExecStart') store = / --store[= ](\S+)/.exec(value)?.[1]
    if (name === 'Environment') environment = value === '' ? {} : { ...environment, ...assignments(value) }
  }
  return { user, environment, store: store === undefined ? undefined : resolved(store) }
}

/** The drop-ins in the order in which systemd applies them: by name, each name from the first folder that has it. */
function dropIns(folders: readonly string[], system: UnitSystem): readonly string[] {
  const places = new Map<string, string>()
  for (const folder of folders.map((one) => join(one, `${unit}.d`))) {
    for (const name of namesIn(folder)) {
      if (name.endsWith('.conf') && !places.has(name)) places.set(name, join(folder, name))
    }
  }
  return [...places]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([, path]) => trustedText(path, system) ?? [])
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** The text of a file. Undefined if an account other than the owner could change it, or anything on the way to it. */
function trustedText(path: string, { root, owner }: UnitSystem): string | undefined {
  try {
    const top = realpathSync(root)
    const { places, end } = localWay(path)
    // Other than the root of tests, `/` has nothing above it.
    const inside = places.filter((place) => isWithin(place.path, top))
    if (end === undefined || places.some((place) => !isWithin(place.path, top) && !isWithin(top, place.path))) return
    const stat = statSync(end)
    if (!stat.isFile() || stat.size > maxUnitBytes || inside.some(({ uid }) => uid !== owner)) return
    return untrustedPlaces(inside, { uid: owner }).length === 0 ? readFileSync(end, 'utf8') : undefined
  } catch {
    return undefined
  }
}

const isWithin = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)

/** The settings of the section Service. A line that ends with a backslash goes on in the next one. */
function serviceLines(text: string): readonly (readonly [name: string, value: string])[] {
  let section = ''
  return text
    .replace(/\\\n/g, ' ')
    .split('\n')
    .flatMap((line) => {
      section = /^\s*\[(.*)\]\s*$/.exec(line)?.[1] ?? section
      const [, name, value] = /^\s*(\w+)\s*=(.*)$/.exec(line) ?? []
      return section === 'Service' && name !== undefined && value !== undefined ? [[name, value.trim()] as const] : []
    })
}

/** `A=b "C=d e"` as an object. */
const assignments = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].flatMap(([, one, two, three]) => {
      const [, name, value] = /^(\w+)=(.*)$/.exec(one ?? two ?? three ?? '') ?? []
      return name === undefined || value === undefined ? [] : [[name, resolved(value)] as const]
    }),
  )

/** Stands for a specifier whose value only systemd has. */
const unknown = '\0'

/** Replaces the specifiers of systemd that a system service has the same value of everywhere. */
const resolved = (text: string): string =>
  text.replace(/%(.)/g, (_, letter: string) => ({ '%': '%', S: '/var/lib', E: '/etc', t: '/run' })[letter] ?? unknown)
