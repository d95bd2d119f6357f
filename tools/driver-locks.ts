/**
 * What `svc drivers add` gives npm: for each driver, a package.json and the part of package-lock.json that the driver
 * needs, with the same versions and hashes.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { ShippedDriver } from '../src/core/drivers/index.ts'

type LockedPackage = {
  readonly version: string
  readonly integrity?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}
type Packages = Readonly<Record<string, LockedPackage>>

const locked = (): Packages => {
  const file = new URL('../package-lock.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly packages: Packages }).packages
}

/**
 * The installation of a driver. Throws for a package that is not locked, and for one without a hash.
 *
 * @example
 * ```ts
 * installation('sftp', 'ssh2').version // '1.17.0'
 * ```
 */
export function installation(name: string, driver: string, packages: Packages = locked()): ShippedDriver {
  const needed = new Map<string, object>()
  const visit = (place: string): void => {
    if (needed.has(place)) return
    const entry = packages[place]
    if (entry?.integrity === undefined) throw new Error(`${place} has no hash in package-lock.json`)
    // With these, npm would leave it out.
    const { dev: _, devOptional: __, peer: ___, ...own } = entry as LockedPackage & Record<string, unknown>
    needed.set(place, own)
    for (const dependency of Object.keys({ ...entry.dependencies, ...entry.optionalDependencies })) {
      const found = placeOf(dependency, place, packages)
      if (found === undefined) throw new Error(`${dependency}, which ${place} needs, is not in package-lock.json`)
      visit(found)
    }
  }
  visit(`node_modules/${driver}`)
  const { version } = packages[`node_modules/${driver}`] as LockedPackage
  const about = { name: `svc-driver-${name}`, private: true, dependencies: { [driver]: version } }
  const sorted = [...needed].sort(([one], [other]) => (one < other ? -1 : 1))
  const lock = {
    name: about.name,
    lockfileVersion: 3,
    requires: true,
    packages: { '': { name: about.name, dependencies: about.dependencies }, ...Object.fromEntries(sorted) },
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
