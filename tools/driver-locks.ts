/**
 * The input of npm for `svc drivers add`: for each driver, a package.json and the part of package-lock.json that the
 * driver needs, with the same versions and hashes.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { ShippedDriver } from '../src/core/checks/drivers/index.ts'

type LockedPackage = {
  readonly version: string
  readonly integrity?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
}
type Packages = Readonly<Record<string, LockedPackage>>

const locked = (): Packages => {
  const file = new URL('../package-lock.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly packages: Packages }).packages
}

/**
 * The entries of package-lock.json that these packages need, by their places. Throws for a package that is not locked, and
 * for one without a hash.
 */
export function lockedPackages(
  names: readonly string[],
  packages: Packages = locked(),
): Readonly<Record<string, object>> {
  const needed = new Map<string, object>()
  const visit = (place: string): void => {
    if (needed.has(place)) return
    const entry = packages[place]
    if (entry?.integrity === undefined) throw new Error(`${place} has no hash in package-lock.json`)
    // With the first three, npm would leave it out. The last one has addresses.
    const {
      dev: _,
      devOptional: __,
      peer: ___,
      funding: ____,
      ...own
    } = entry as LockedPackage & Record<string, unknown>
    needed.set(place, own)
    const peers = Object.keys(entry.peerDependencies ?? {}).filter(
      (name) => !entry.peerDependenciesMeta?.[name]?.optional,
    )
    for (const dependency of [...Object.keys({ ...entry.dependencies, ...entry.optionalDependencies }), ...peers]) {
      const itsPlace = placeOf(dependency, place, packages)
      if (itsPlace === undefined) throw new Error(`${dependency}, which ${place} needs, is not in package-lock.json`)
      visit(itsPlace)
    }
  }
  for (const name of names) visit(`node_modules/${name}`)
  return Object.fromEntries([...needed].sort(([one], [other]) => (one < other ? -1 : 1)))
}

/**
 * The installation of a driver.
 *
 * @example
 * ```ts
 * installation('sftp', 'ssh2').version // '1.17.0'
 * ```
 */
export function installation(name: string, driver: string, packages: Packages = locked()): ShippedDriver {
  const needed = lockedPackages([driver], packages)
  const { version } = packages[`node_modules/${driver}`] as LockedPackage
  const about = { name: `svc-driver-${name}`, private: true, dependencies: { [driver]: version } }
  const lock = {
    name: about.name,
    lockfileVersion: 3,
    requires: true,
    packages: { '': { name: about.name, dependencies: about.dependencies }, ...needed },
  }
  const text = json(lock)
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 12)
  return { version, folder: `${name}-${hash}`, files: { 'package.json': json(about), 'package-lock.json': text } }
}

const json = (value: object): string => `${JSON.stringify(value, null, 1)}\n`

/** Node's own search: in the package, then in each package around it. */
function placeOf(dependency: string, from: string, packages: Packages): string | undefined {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    const place = `${at === '' ? '' : `${at}/`}node_modules/${dependency}`
    if (packages[place]) return place
    if (at === '') return undefined
  }
}
