import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** Where `.ci/unpack` puts the packages that cannot be installed beside each other. */
const folder = join(import.meta.dirname, '../../../node_modules/.cache/debian')

export type UnpackedProgram = {
  /** The root of the unpacked packages. */
  readonly root: string
  readonly program: string
  /** The environment in which the program finds its libraries. */
  readonly env: Readonly<Record<string, string>>
}

/** A program of an unpacked package, e.g. `unpackedProgram('exim4', 'usr/sbin/exim4')`, or undefined where missing. */
export function unpackedProgram(name: string, path: string): UnpackedProgram | undefined {
  const root = join(folder, name)
  const program = join(root, path)
  if (!existsSync(program)) return undefined
  const libraries = ['usr/lib/x86_64-linux-gnu', 'usr/lib/aarch64-linux-gnu', 'usr/lib/postfix', 'lib']
  return { root, program, env: { LD_LIBRARY_PATH: libraries.map((library) => join(root, library)).join(':') } }
}
