import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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

/** One for each rule: the quick tier shows that the rules find something, the slow one that they find all of these. */
export const oneForEachRule = (plants: readonly Plant[]): readonly Plant[] =>
  plants.filter(({ rule }, at) => plants.findIndex((other) => other.rule === rule) === at)

const core = new URL('../../src/core/', import.meta.url)

/**
 * Loads the index of a folder of `src/core` with a defect. `others`: what its files import besides each other, as they
 * write it, and where it is in `src/core`. Throws if the text that the defect replaces does not occur exactly once.
 */
export async function plantedFolder<T>(
  name: string,
  others: Readonly<Record<string, string>>,
  { file, from, to, what }: Plant,
): Promise<{ readonly index: T; readonly remove: () => void }> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-planted-'))
  cpSync(new URL(`${name}/`, core).pathname, folder, { recursive: true })
  const path = join(folder, file)
  const source = readFileSync(path, 'utf8')
  if (source.split(from).length !== 2) throw new Error(`${what}: ${file} has no single "${from}"`)
  writeFileSync(
    path,
    source.replace(from, () => to),
  )
  for (const each of readdirSync(folder)) {
    let text = readFileSync(join(folder, each), 'utf8')
    for (const [as, place] of Object.entries(others))
      text = text.replace(`'${as}'`, JSON.stringify(new URL(place, core).href))
    writeFileSync(join(folder, each), text)
  }
  const index = (await import(/* @vite-ignore */ pathToFileURL(join(folder, 'index.ts')).href)) as T
  return { index, remove: () => rmSync(folder, { recursive: true, force: true }) }
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
