import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const core = fileURLToPath(new URL('../../src/core/', import.meta.url))

/** Declarations of the classes, and what reads reports: nothing there is found by a run. */
const without = /^(?:base\/probe-error|checks\/engine\/result|checks\/reports\/.*)\.ts$/
const comment = /^\s*(?:\/\/|\/?\*).*$/gm
/** The class of a fault as a value: not the event of a stream, a comparison or a type. */
const classOfFault =
  /(?<!\.(?:on|once|off|emit|removeListener|removeAllListeners)\(|emit\(event, |=== |!== |\| |^\s*\[)'(?:data|internal)'(?!\s*\||: |\]\?)[,)]?\s*/gm
/** Characters of the source that name a fault. */
const maxLength = 46

/** Every place in the source that names the class `data` or `internal` of a fault: `FILE: THE REST OF ITS LINE`, or the next line. */
export const runTimeFaults = (): readonly string[] =>
  ['checks/**/*.ts', 'base/**/*.ts']
    .flatMap((pattern) => globSync(pattern, { cwd: core }))
    .filter((file) => !without.test(file))
    .toSorted()
    .flatMap((file) => {
      const source = readFileSync(`${core}${file}`, 'utf8').replace(comment, '')
      return [...source.matchAll(classOfFault)].map(({ index, 0: whole }) => {
        const from = index + whole.length
        const [line = ''] = source.slice(from, from + maxLength).split('\n', 1)
        return `${file}: ${line.trim()}`
      })
    })
