import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { basename, dirname, join, type PlatformPath, posix, win32 } from 'node:path'
import { fileURLToPath } from 'node:url'
import type * as Mongodb from 'mongodb'
import type * as Ssh2 from 'ssh2'
import type * as Tedious from 'tedious'
import { fileMeaning } from '../../base/file-errors.ts'
import { ProbeError } from '../../base/probe-error.ts'
import { type AccountOfTrust, distrustOf } from './trust.ts'

export { type AccountOfTrust, type Distrust, distrustOf } from './trust.ts'

type Modules = {
  readonly sqlserver: typeof Tedious
  readonly mongo: typeof Mongodb
  readonly sftp: typeof Ssh2
}

/** A driver, by the kind of monitor that needs it. */
export type DriverName = keyof Modules

/** The drivers that `svc drivers add` installs, because most installations load none of them, and their npm packages. */
export const drivers: Readonly<Record<DriverName, string>> = { sqlserver: 'tedious', mongo: 'mongodb', sftp: 'ssh2' }

export const driverNames = Object.keys(drivers) as readonly DriverName[]

/** The command that installs a driver. */
export const addCommand = (name: DriverName): string => `svc drivers add ${name}`

/** Where a command line looks for drivers. */
export type DriverSearch = AccountOfTrust & {
  /** The folder that holds svc's own package.json. */
  readonly root: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly platform: NodeJS.Platform
  readonly home: string
}

/** The folders to which drivers are added: this account's, and that of root (or the administrators) for all accounts. */
export type DriverFolders = { readonly own: string; readonly system: string }

/**
 * @example
 * ```ts
 * driverFolders({ env: { SVC_HOME: '/srv/svc' }, platform: 'linux', home: '/root' }).own // '/srv/svc/drivers'
 * driverFolders({ env: {}, platform: 'linux', home: '/home/ops' }).own // '/home/ops/.local/share/svc/drivers'
 * driverFolders({ env: {}, platform: 'linux', home: '/home/ops' }).system // '/usr/local/lib/svc/drivers'
 * ```
 */
export function driverFolders({ env, platform, home }: Pick<DriverSearch, 'env' | 'platform' | 'home'>): DriverFolders {
  const path = platform === 'win32' ? win32 : posix
  const system = platform === 'win32' ? path.join(env['ProgramData'] || 'C:\\ProgramData', 'svc') : '/usr/local/lib/svc'
  return { own: path.join(dataFolder(env, platform, home, path), 'drivers'), system: path.join(system, 'drivers') }
}

function dataFolder(env: DriverSearch['env'], platform: NodeJS.Platform, home: string, path: PlatformPath): string {
  const { SVC_HOME: own, LOCALAPPDATA: local, XDG_DATA_HOME: xdg } = env
  // A relative path would depend on the working directory.
  if (own && path.isAbsolute(own)) return own
  if (platform === 'win32') return path.join(local || path.join(home, 'AppData', 'Local'), 'svc')
  if (platform === 'darwin') return path.join(home, 'Library', 'Application Support', 'svc')
  return path.join(xdg && path.isAbsolute(xdg) ? xdg : path.join(home, '.local', 'share'), 'svc')
}

/** The folder to which this account adds drivers: root adds them for the service and all accounts. */
export function targetFolder(search: DriverSearch): string {
  const { own, system } = driverFolders(search)
  return search.uid === 0 && !search.env['SVC_HOME'] ? system : own
}

export type LocatedDriver = {
  /** The folder of the driver's npm package. */
  readonly path: string
  readonly version: string
  /** The folder that `svc drivers add` made. */
  readonly folder?: string | undefined
}

/** Why there is no driver that svc may load. */
export type DriverLack = {
  readonly state: 'missing' | 'not trusted'
  /** In words that follow the name of the driver. */
  readonly reason: string
  /** The commands that mend it. */
  readonly cures: readonly string[]
}

export type DriverStatus =
  | { readonly driver: LocatedDriver; readonly lack?: undefined }
  | { readonly driver?: undefined; readonly lack: DriverLack }

/**
 * Finds a driver: in svc's own package, then where it was added, then beside the package. Neither the working directory
 * nor NODE_PATH nor a folder above counts, and an added driver only if nobody else could have written it.
 */
export function findDriver(name: DriverName, search: DriverSearch = driverSearch()): DriverStatus {
  const inPackage = packaged(join(search.root, 'node_modules'), name)
  if (inPackage) return { driver: inPackage }
  let refused: DriverLack | undefined
  const { own, system } = driverFolders(search)
  for (const folder of addedIn(name, [own, system], search.root)) {
    const driver = packaged(join(folder, 'node_modules'), name)
    if (!driver) continue
    const distrust = distrustOf([folder, driver.path, join(driver.path, 'package.json')], search)
    if (!distrust) return { driver: { ...driver, folder } }
    refused ??= { state: 'not trusted', reason: `is not trusted: ${distrust.reason}`, cures: distrust.cures }
  }
  const beside = modulesAround(search.root).flatMap((folder) => packaged(folder, name) ?? [])[0]
  if (beside) return { driver: beside }
  return { lack: refused ?? { state: 'missing', reason: `is missing: ${addCommand(name)}`, cures: [addCommand(name)] } }
}

/** The `node_modules` that contains svc's package, whose name may have a scope. */
const modulesAround = (root: string): readonly string[] =>
  [dirname(root), dirname(dirname(root))].filter((folder) => basename(folder) === 'node_modules').slice(0, 1)

/** The folders of an added driver: first the one that this version of svc installs. */
function addedIn(name: DriverName, folders: readonly string[], root: string): readonly string[] {
  return folders.flatMap((folder) => {
    const names = entriesOf(folder).filter((entry) => entry.startsWith(`${name}-`))
    const current = names.length > 1 ? shippedDriver(name, root)?.folder : undefined
    return names
      .toSorted((one, other) => Number(other === current) - Number(one === current))
      .map((one) => join(folder, one))
  })
}

function entriesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if (fileMeaning(error) === undefined) throw error
    return []
  }
}

function packaged(modules: string, name: DriverName): LocatedDriver | undefined {
  const path = join(modules, drivers[name])
  const file = join(path, 'package.json')
  if (!existsSync(file)) return undefined
  const version = versionIn(file)
  return version === undefined ? undefined : { path, version }
}

function versionIn(file: string): string | undefined {
  try {
    const { version } = JSON.parse(readFileSync(file, 'utf8')) as { readonly version?: unknown }
    return typeof version === 'string' && /^[\w.+-]{1,64}$/.test(version) ? version : undefined
  } catch {
    return undefined
  }
}

/** The packages that this version of svc installs as a driver. */
export type ShippedDriver = {
  readonly version: string
  /** The name of its folder, which other contents do not have. */
  readonly folder: string
  /** The texts of the files from which npm installs it. */
  readonly files: { readonly 'package.json': string; readonly 'package-lock.json': string }
}

/** Undefined in sources that were not built. */
export function shippedDriver(name: DriverName, root: string = ownRoot()): ShippedDriver | undefined {
  const file = join(root, 'dist', 'drivers.json')
  if (!existsSync(file)) return undefined
  return (JSON.parse(readFileSync(file, 'utf8')) as Readonly<Record<DriverName, ShippedDriver>>)[name]
}

/** svc's own folder, from the sources and from the bundle. */
const ownRoot = (): string =>
  fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? '../../../..' : '..', import.meta.url)).replace(/[\\/]$/, '')

/** The search of this process, or of a command line with another environment. */
export const driverSearch = (env: DriverSearch['env'] = process.env, home: string = homedir()): DriverSearch => ({
  root: ownRoot(),
  env,
  platform: process.platform,
  home,
  uid: process.geteuid?.(),
})

/** A driver that is missing or not trusted: its monitors are not checked, whatever their servers do. */
export class MissingDriverError extends ProbeError {
  override readonly name = 'MissingDriverError'
  constructor(message: string, details: readonly string[]) {
    super('internal', message, details)
  }
}

const paths = new Map<DriverName, string>()

/** Why monitors of a kind cannot be checked. Undefined if its driver is there, which is looked for until it is. */
export function missingDriver(name: DriverName): MissingDriverError | undefined {
  if (paths.has(name)) return undefined
  const { driver, lack } = findDriver(name)
  if (driver) {
    paths.set(name, driver.path)
    return undefined
  }
  const details = lack.state === 'missing' ? [] : lack.cures.map((cure) => `next: ${cure}`)
  return new MissingDriverError(`the driver for ${name} ${lack.reason}`, details)
}

/** The folder of a driver. Throws MissingDriverError. */
export function driverPath(name: DriverName): string {
  const missing = missingDriver(name)
  if (missing) throw missing
  return paths.get(name) as string
}

/** Loads a driver. Throws MissingDriverError, and loading errors. */
export const loadDriver = <N extends DriverName>(name: N): Modules[N] =>
  createRequire(import.meta.url)(driverPath(name)) as Modules[N]
