import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { handWritten, read, repository, repositoryFiles } from '../support/suite/repository.ts'

const folder = 'docs/decisions/'

/** The index: a row for each decision that stands, and a row for each folded one with its heir. */
const index = read(`${folder}README.md`)
const decisions = new Map(
  [...index.matchAll(/^\| \[(\d{4})\]\((\d{4}-[\w-]+\.md)\) \|/gm)].map(([, number, file]) => [number, file] as const),
)
const folded = new Map(
  [...index.matchAll(/^\| (\d{4}) → \[(\d{4})\]\((\d{4}-[\w-]+\.md)\) \|/gm)].map(
    ([, number, heir, file]) => [number, { heir, file }] as const,
  ),
)

/** Decisions that a text names by a number, as in "decision 12", "decisions 0012 and 13" and "[0012](0012-…)". */
function* numbersIn(text: string): Generator<string> {
  for (const [, list] of text.matchAll(/\bdecisions?(?:[\s*#]|\/\/)+(\d{1,4}\b(?:(?:, | and )\d{1,4}\b)*)/gi))
    for (const number of list?.match(/\d+/g) ?? []) yield number.padStart(4, '0')
  for (const [, number] of text.matchAll(/\[(\d{1,4})\]\((?:[\w./]*\/)?\d{4}-[\w-]+\.md/g))
    yield (number ?? '').padStart(4, '0')
}

/** Files of decisions that a text names: anywhere by their path, and in the folder itself by links. */
function* filesIn(text: string, inFolder: boolean): Generator<string> {
  for (const [, file] of text.matchAll(/\bdecisions\/(\d{4}-[\w-]+\.md)/g)) yield file ?? ''
  if (inFolder) for (const [, file] of text.matchAll(/\]\((\d{4}-[\w-]+\.md)/g)) yield file ?? ''
}

/** Links whose text has another number than their file. */
const crossed = (text: string): string[] =>
  [...text.matchAll(/\[(?:decision )?(\d{1,4})\]\((?:[\w./]*\/)?(\d{4})-[\w-]+\.md/gi)]
    .filter(([, number, file]) => number?.padStart(4, '0') !== file)
    .map(([link]) => link)

const sources = handWritten('test/docs/decisions.test.ts')
const texts = sources.map((file) => ({ file, text: read(file), inFolder: file.startsWith(folder) }))

test('the index of the decisions has each file once, with its title', () => {
  const files = repositoryFiles.filter((file) => file.startsWith(folder) && !file.endsWith('README.md'))
  expect([...decisions.values()].map((file) => `${folder}${file}`).sort()).toEqual(files.sort())
  const titles = files.map((file) => /^# (.*)$/m.exec(read(file))?.[1])
  const rows = files.map((file) => {
    const number = file.slice(folder.length, folder.length + 4)
    const title = index.split('\n').find((line) => line.startsWith(`| [${number}]`))
    return `${Number(number)}. ${title?.split(' | ')[1]}`
  })
  expect(titles).toEqual(rows)
  expect(files.length).toBeLessThanOrEqual(50)
})

test('each source and test that a decision names exists', () => {
  const names = texts
    .filter(({ inFolder }) => inFolder)
    .flatMap(({ file, text }) =>
      [...text.matchAll(/`([\w-][\w./-]*\.(?:ts|mjs))`/g)].map(([, name]) => ({ file, name: `/${name}` })),
    )
  expect(names.length).toBeGreaterThan(70)
  const paths = repositoryFiles.map((path) => `/${path}`)
  expect(
    names.filter(({ name }) => !paths.some((path) => path.endsWith(name))).map(({ file, name }) => `${file}: ${name}`),
  ).toEqual([])
})

test('each npm script that a page of docs names exists', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  const names = texts
    .filter(({ file }) => /^docs\/.*\.md$/.test(file))
    .flatMap(({ file, text }) =>
      [...text.matchAll(/\bnpm run ([\w:-]+)/g)].map(([, name]) => ({ file, name: name ?? '' })),
    )
  expect(names.length).toBeGreaterThan(20)
  expect(names.filter(({ name }) => !(name in scripts)).map(({ file, name }) => `${file}: ${name}`)).toEqual([])
})

test('each number stands or is folded, and a folded one names an heir that stands', () => {
  expect([...folded.keys()].filter((number) => decisions.has(number))).toEqual([])
  expect([...folded].filter(([, { heir, file }]) => decisions.get(heir ?? '') !== file)).toEqual([])
  expect(folded.size).toBeGreaterThan(70)
})

test('each number of a decision in a document, a source or a test is one of the index', () => {
  const numbers = texts.flatMap(({ file, text }) => [...numbersIn(text)].map((number) => ({ file, number })))
  expect(numbers.length).toBeGreaterThan(40)
  expect(
    numbers
      .filter(({ number }) => !decisions.has(number) && !folded.has(number))
      .map(({ file, number }) => `${file}: ${number}`),
  ).toEqual([])
})

test('each link to a decision leads to a file, and its text has the number of that file', () => {
  const links = texts.flatMap(({ file, text, inFolder }) =>
    [...filesIn(text, inFolder)].map((decision) => ({ file, decision })),
  )
  expect(links.length).toBeGreaterThan(100)
  expect(
    links
      .filter(({ decision }) => !existsSync(`${repository}${folder}${decision}`))
      .map(({ file, decision }) => `${file}: ${decision}`),
  ).toEqual([])
  expect(texts.flatMap(({ file, text }) => crossed(text).map((link) => `${file}: ${link}`))).toEqual([])
})

test('a reference that leads nowhere is found', () => {
  const text = 'as (decision\n * 0999) and decisions 7 and 998 say; [996](0997-gone.md), decisions/0995-away.md'
  expect([...numbersIn(text)]).toEqual(['0999', '0007', '0998', '0996'])
  expect([...filesIn(text, true)]).toEqual(['0995-away.md', '0997-gone.md'])
  expect(crossed(text)).toEqual(['[996](0997-gone.md'])
})
