import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** The folder with the packages: the scripts are read in place. */
const [packages = '', outputs = ''] = process.argv.slice(2)

/** A module of an installed package, by its path there. */
export const load = (name) => import(pathToFileURL(join(packages, 'node_modules', name)).href)

export const summary = (tests, failed, skipped, alerts, figures = {}) => ({
  ...{ tests, failed, skipped, alerts: alerts.toSorted(), figures },
})

/** Reads each output and prints `{version, runs: {name: {tests, failed, skipped, alerts, figures}}}`. */
export async function run(name, read) {
  const { version } = JSON.parse(readFileSync(join(packages, 'node_modules', name, 'package.json'), 'utf8'))
  const runs = {}
  for (const file of readdirSync(outputs).sort()) {
    try {
      runs[file] = await read(join(outputs, file))
    } catch (error) {
      runs[file] = { error: String(error) }
    }
  }
  process.stdout.write(JSON.stringify({ version, runs }))
}
