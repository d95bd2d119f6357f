import { lstatSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type AccountFiles, homeFolderOf, localWay, systemAccounts, untrustedPlaces } from '../base/own-files.ts'
import { refuseSilentShare, shownStore, storeKind, storePathFor, unitFolders, unitName } from './path.ts'

/** The store that the systemd unit `svc.service` of this machine uses. */
export type ServiceStore = {
  readonly account: string
  /** The home folder of the account. */
  readonly home: string
  /** The path of a file, or a URL, which may contain a password. */
  readonly place: string
  /** The same as shown to people. */
  readonly store: string
  /** Whether the file exists, or the unit is enabled: a unit that is only installed uses nothing. */
  readonly isUsed: boolean
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

const maxUnitBytes = 65_536

/**
 * The store of `svc.service`, by the unit and its drop-ins. Reads only files that no account but root can change, and
 * opens nothing in the folders of the service. Undefined without such a unit, and where its account or its environment
 * cannot be read. Throws Fault `Local` for a store on a share that does not answer.
 */
export async function storeOfService(system: UnitSystem = thisSystem): Promise<ServiceStore | undefined> {
  const settings = settingsOf(system)
  const account = settings?.user ?? 'root'
  if (settings === undefined || !accountName.test(account)) return
  const home = homeFolderOf(account, system.accounts)
  const { SVC_STORE, SVC_HOME, XDG_DATA_HOME } = settings.environment
  const env = { SVC_STORE: settings.store ?? SVC_STORE, SVC_HOME, XDG_DATA_HOME }
  const variables = Object.entries(env).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${shownStore(value)}`],
  )
  if (home === undefined || variables.some((text) => text.includes(unknown))) return
  const place = storePathFor(env, 'linux', home)
  if (storeKind(place) === 'sqlite') await refuseSilentShare(place)
  const isUsed = storeKind(place) === 'postgres' || !isAbsent(join(system.root, place)) || isEnabled(system)
  return { account, home, place, store: shownStore(place), isUsed, variables }
}

/** Whether a target of this machine starts the unit. */
function isEnabled({ root }: UnitSystem): boolean {
  const folder = join(root, 'etc/systemd/system')
  return namesIn(folder).some((name) => /\.(?:wants|requires)$/.test(name) && !isAbsent(join(folder, name, unitName)))
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
  const main = folders.map((folder) => join(folder, unitName)).find((path) => !isAbsent(path))
  // A masked unit is a link to /dev/null.
  const text = main === undefined ? undefined : trustedText(main, system)
  if (text === undefined) return undefined
  let user: string | undefined
  let store: string | undefined
  let environment: Record<string, string> = {}
  let files: readonly string[] = []
  for (const [name, value] of [text, ...dropIns(folders, system)].flatMap(serviceLines)) {
    if (name === 'User') user = value || undefined
    if (name === 'ExecStart') store = / --store[= ](\S+)/.exec(value)?.[1]
    if (name === 'Environment') environment = value === '' ? {} : { ...environment, ...assignments(value) }
    if (name === 'EnvironmentFile') files = value === '' ? [] : [...files, resolved(value.replace(/^-/, ''))]
  }
  for (const file of files.map((path) => join(system.root, path))) {
    const lines = isAbsent(file) ? '' : trustedText(file, system)
    // It may choose another store.
    if (lines === undefined) return undefined
    for (const line of lines.split('\n')) {
      const [, name, value] = /^\s*(\w+)=(.*)$/s.exec(line) ?? []
      if (name !== undefined && value !== undefined) environment = { ...environment, [name]: unquoted(value.trimEnd()) }
    }
  }
  return { user, environment, store: store === undefined ? undefined : resolved(store) }
}

/** The drop-ins in the order in which systemd applies them: by name, each name from the first folder that has it. */
function dropIns(folders: readonly string[], system: UnitSystem): readonly string[] {
  const places = new Map<string, string>()
  for (const folder of folders.map((one) => join(one, `${unitName}.d`))) {
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
    [...text.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)].flatMap(([word]) => {
      const [, name, value] = /^(\w+)=(.*)$/.exec(unquoted(word)) ?? []
      return name === undefined || value === undefined ? [] : [[name, resolved(value)] as const]
    }),
  )

const unquoted = (word: string): string => word.replace(/"([^"]*)"|'([^']*)'/g, '$1$2')

/** Stands for a specifier whose value only systemd has. */
const unknown = '\0'

/** Replaces the specifiers of systemd that a system service has the same value of everywhere. */
const resolved = (text: string): string =>
  text.replace(/%(.)/g, (_, letter: string) => ({ '%': '%', S: '/var/lib', E: '/etc', t: '/run' })[letter] ?? unknown)
