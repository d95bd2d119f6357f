import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

type Manifest = {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

/**
 * The folders of all packages that the program needs at run time, sorted: its dependencies and theirs, as Node finds
 * them from each package. Optional packages that are not installed (for other platforms) are left out. With `drivers`, also those
 * that `svc drivers add` installs.
 */
export function runtimePackages(root: string, { drivers }: { readonly drivers: boolean }): readonly string[] {
  const folders = new Set<string>()
  const visit = (folder: string): void => {
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
    const optional = new Set(Object.keys(manifest.optionalDependencies ?? {}))
    const peers = folder === root && drivers ? Object.keys(manifest.peerDependencies ?? {}) : []
    for (const name of new Set([...Object.keys(manifest.dependencies ?? {}), ...optional, ...peers])) {
      const own = installedAt(folder, name)
      if (own === undefined) {
        if (optional.has(name)) continue
        throw new Error(`${name}, which ${folder} needs, is not installed: run npm ci`)
      }
      if (folders.has(own)) continue
      folders.add(own)
      visit(own)
    }
  }
  visit(root)
  return [...folders].sort()
}

/** Node's own search: `node_modules` beside the package, then in each folder above it. */
function installedAt(folder: string, name: string): string | undefined {
  for (let place = folder; ; place = dirname(place)) {
    const candidate = join(place, 'node_modules', name)
    if (existsSync(join(candidate, 'package.json'))) return candidate
    if (place === dirname(place)) return undefined
  }
}
