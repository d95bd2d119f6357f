import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * The source files that a command runs through: those of which a function ran, as V8 counts them. Files that
 * are only loaded for their types, tables or classes are not among them. The command runs from the sources, with
 * a home folder of its own. `npm run files -- health --type Sql --mode Basic` prints them and their number.
 */
export function filesRun(command: readonly string[]): readonly string[] {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const folder = mkdtempSync(join(tmpdir(), 'svc-files-run-'))
  try {
    const { functions } = functionsRun([join(root, 'bin/dev.js'), ...command], folder)
    const files = [...functions.keys()].filter((file) => file.startsWith(join(root, 'src')))
    return files.map((file) => file.slice(root.length)).sort()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Where a function begins and ends in its file, in UTF-16 code units. */
export type FunctionRange = `${number} ${number}`
export const rangeOf = (start: number, end: number): FunctionRange => `${start} ${end}`

type CommandRun = {
  readonly exitCode: number | null
  /** The functions that ran, by the path of their file. Files of which none ran are missing. */
  readonly functions: ReadonlyMap<string, ReadonlySet<FunctionRange>>
}

/** Runs a program of Node with its arguments, in a home folder, and waits for its end. */
export function functionsRun(command: readonly string[], home: string): CommandRun {
  const coverage = mkdtempSync(join(realpathSync(home), 'coverage-'))
  const env = { PATH: process.env['PATH'], HOME: home, SVC_HOME: home, NODE_V8_COVERAGE: coverage }
  const { status } = spawnSync(process.execPath, command, { env, stdio: 'ignore' })
  const functions = new Map<string, Set<FunctionRange>>()
  for (const name of readdirSync(coverage)) {
    const { result } = JSON.parse(readFileSync(join(coverage, name), 'utf8')) as Coverage
    for (const script of result) {
      if (!script.url.startsWith('file:')) continue
      // The first function of a script is the script itself.
      const ran = script.functions.slice(1).flatMap(({ ranges: [range] }) => (range && range.count > 0 ? [range] : []))
      if (ran.length === 0) continue
      const path = fileURLToPath(script.url)
      const ranges = ran.map(({ startOffset, endOffset }) => rangeOf(startOffset, endOffset))
      functions.set(path, new Set([...(functions.get(path) ?? []), ...ranges]))
    }
  }
  return { exitCode: status, functions }
}

type Coverage = {
  readonly result: readonly {
    readonly url: string
    readonly functions: readonly {
      readonly ranges: readonly { readonly startOffset: number; readonly endOffset: number; readonly count: number }[]
    }[]
  }[]
}

if (import.meta.main) {
  const files = filesRun(process.argv.slice(2))
  process.stdout.write(`${files.join('\n')}\n${files.length} files\n`)
}
