import { readFileSync } from 'node:fs'

type PackageJson = { readonly name: string; readonly version: string; readonly [key: string]: unknown }

let read: PackageJson | undefined

/** The package's own package.json: two folders up from the sources, one up from the bundle. */
export function packageJson(): PackageJson {
  if (read) return read
  const here = import.meta.url
  const file = new URL(here.endsWith('.ts') ? '../../package.json' : '../package.json', here)
  read = JSON.parse(readFileSync(file, 'utf8')) as PackageJson
  return read
}

/** The folder that holds package.json. */
export const packageRoot = (): string => {
  const here = import.meta.url
  return decodeURIComponent(new URL(here.endsWith('.ts') ? '../..' : '..', here).pathname)
}
