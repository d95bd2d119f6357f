import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
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
  const coverage = join(folder, 'coverage')
  try {
    const env = { PATH: process.env['PATH'], HOME: folder, SVC_HOME: folder, NODE_V8_COVERAGE: coverage }
    spawnSync(process.execPath, [join(root, 'bin/dev.js'), ...command], { env, stdio: 'ignore' })
    const files = new Set<string>()
    for (const name of readdirSync(coverage)) {
      const { result } = JSON.parse(readFileSync(join(coverage, name), 'utf8')) as Coverage
      for (const { url, functions } of result) {
        const path = url.startsWith('file:') ? fileURLToPath(url) : ''
        if (!path.startsWith(join(root, 'src'))) continue
        // The first function of a script is the script itself.
        if (functions.slice(1).some(({ ranges }) => (ranges[0]?.count ?? 0) > 0)) files.add(path.slice(root.length))
      }
    }
    return [...files].sort()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

type Coverage = {
  readonly result: readonly {
    readonly url: string
    readonly functions: readonly { readonly ranges: readonly { readonly count: number }[] }[]
  }[]
}

if (import.meta.main) {
  const files = filesRun(process.argv.slice(2))
  process.stdout.write(`${files.join('\n')}\n${files.length} files\n`)
}
