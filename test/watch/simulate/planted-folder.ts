import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** A defect: a text of a file, and what stands in its place. */
export type Plant = {
  readonly what: string
  readonly file: string
  readonly from: string
  readonly to: string
  /** The rule that finds it. */
  readonly rule: string
  /** Where many seeds do not find it, one that does: it is tried first. */
  readonly seed?: number
}

const watch = new URL('../../../src/core/watch/', import.meta.url)

/**
 * Loads the index of a folder of `src/core/watch` with a defect. `more`: files that are copied beside it. Throws if the
 * text that the defect replaces does not occur exactly once.
 */
export async function plantedFolder<T>(
  name: string,
  { file, from, to, what }: Plant,
  more: readonly URL[] = [],
): Promise<{ readonly index: T; readonly load: (file: string) => Promise<object>; readonly remove: () => void }> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-planted-'))
  const shipped = new URL(`${name}/`, watch)
  const sources = [...readdirSync(shipped).map((each) => new URL(each, shipped)), ...more]
  const original = readFileSync(
    sources.find((source) => basename(source.pathname) === file) ?? new URL(file, shipped),
    'utf8',
  )
  if (original.split(from).length !== 2) throw new Error(`${what}: ${file} has no single "${from}"`)
  for (const source of sources) {
    const each = basename(source.pathname)
    const text = each === file ? original.replace(from, () => to) : readFileSync(source, 'utf8')
    // What the files import besides each other stays where it is.
    const absolute = text.replace(/from '(\.\.\/[^']+)'/g, (_, path) => `from '${new URL(path, source).href}'`)
    writeFileSync(join(folder, each), absolute)
  }
  const load = (file: string): Promise<object> => import(/* @vite-ignore */ pathToFileURL(join(folder, file)).href)
  const index = (await load('index.ts')) as T
  return { index, load, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** The first seed in which the rule of a defect is broken. `violationsOf`: the broken rules of a seed. */
export function firstSeedOf(
  { rule, seed: first }: Plant,
  seeds: readonly number[],
  violationsOf: (seed: number) => readonly string[],
): number | undefined {
  return [...(first === undefined ? [] : [first]), ...seeds].find((seed) => {
    try {
      return violationsOf(seed).some((one) => one.startsWith(`${rule}:`))
    } catch {
      return false
    }
  })
}
