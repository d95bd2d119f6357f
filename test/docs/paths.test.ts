import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { handWritten, read, repository } from '../support/suite/repository.ts'

/** Documents may name a test without its ending. */
const endings = ['', '.ts', '.test.ts', '.long.test.ts', '.peers.test.ts']
const exists = (path: string): boolean => endings.some((ending) => existsSync(`${repository}${path}${ending}`))

/** The paths of this repository in a text: below one of its folders, and neither a pattern nor a placeholder. */
function* pathsIn(text: string): Generator<string> {
  for (const { 0: path, index } of text.matchAll(
    /(?<![\w./${-])(?:src|test|tools|bench|deploy|docs|findings)\/[\w./-]*\w/g,
  )) {
    const rest = text.slice(index + path.length, index + path.length + 2)
    if (!/^\/?[*<{$]/.test(rest) && !/[A-Z]{2}/.test(path)) yield path
  }
}

const sources = handWritten('test/docs/paths.test.ts')

test('each path of this repository that a document, a tool or a test names exists', () => {
  const places = sources.flatMap((file) => [...pathsIn(read(file))].map((path) => ({ file, path })))
  expect(places.length).toBeGreaterThan(500)
  expect(places.filter(({ path }) => !exists(path)).map(({ file, path }) => `${file}: ${path}`)).toEqual([])
})

test('a path that names nothing is found', () => {
  const text = 'see `test/docs/gone.test.ts`, `src/core/base/lazy.ts`, test/docs/paths and src/core/*/index.ts'
  expect([...pathsIn(text)].filter((path) => !exists(path))).toEqual(['test/docs/gone.test.ts'])
})

test('each file that architecture.md names exists, below src/core where it gives no other folder', () => {
  const names = [...read('docs/architecture.md').matchAll(/`([\w./-]+\/[\w.-]+\.(?:ts|js))`/g)].map(([, name]) => name)
  expect(names.length).toBeGreaterThan(50)
  expect(names.filter((name) => !exists(`src/core/${name}`) && !exists(`${name}`))).toEqual([])
})
