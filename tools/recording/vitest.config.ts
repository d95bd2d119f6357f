import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig, mergeConfig } from 'vitest/config'
import usual from '../../vitest.config.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const recorder = fileURLToPath(new URL('record.ts', import.meta.url))

/** The engine is the module below src/core that defines this function, wherever it lies. */
const definition = /^export async function runMonitors\b/m
const core = join(root, 'src/core')
const engines = readdirSync(core, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => join(core, path))
  .filter((path) => definition.test(readFileSync(path, 'utf8')))
const [engine] = engines
if (engine === undefined || engines.length > 1) {
  throw new Error(`one module below src/core must define runMonitors: ${engines.join(', ') || 'none does'}`)
}

/** The usual tests with an engine that records each run of a monitor; recording.ts says what for. */
export default mergeConfig(
  usual,
  defineConfig({
    root,
    plugins: [
      {
        name: 'record-monitor-runs',
        enforce: 'pre',
        transform(code, id) {
          if (id !== engine) return undefined
          // On the first line, so that the numbers of the others stay.
          return `import { recorded } from ${JSON.stringify(recorder)};${code.replace(definition, 'async function runUnrecorded')}
export function runMonitors(...run) {
  return recorded(runUnrecorded, run)
}
`
        },
      },
    ],
  }),
)
