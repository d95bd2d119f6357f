import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Plant } from './authorization-plants.ts'

/** A separate process with a planted defect: runs the rows that the defect names, and writes the outcome. */
const { file, find, becomes, rows: names } = JSON.parse(process.argv[2] ?? '') as Plant
const planted = new URL(`../../${file}`, import.meta.url).href
if (readFileSync(fileURLToPath(planted), 'utf8').split(find).length !== 2)
  throw new Error(`not once in ${file}: ${find}`)
registerHooks({
  load: (url, context, next) => {
    const loaded = next(url, context)
    if (url !== planted) return loaded
    return { ...loaded, source: String(loaded.source).replace(find, () => becomes) }
  },
})

const { casesOf, runMatrix, startCast } = await import('./authorization-matrix.ts')
const cast = await startCast()
try {
  process.stdout.write(
    JSON.stringify(await runMatrix(cast, casesOf(cast, { all: true, names }), { stopAtFirst: true })),
  )
} finally {
  await cast.close()
}
