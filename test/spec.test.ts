import { expect, test } from 'vitest'
import { conformancePage, promises, readNamed, readPromises, specTests, strayRows } from '../tools/conformance.ts'
import { read } from './support/suite/repository.ts'

const promised = readPromises()
const tests = readNamed()
const promiseIds = new Set(promised.map(({ id }) => id))

test('the specification has ids, and tests name them', () => {
  expect(promiseIds.size).toBe(promised.length)
  expect(promiseIds.size).toBeGreaterThan(90)
  expect(tests.length).toBeGreaterThan(500)
})

/** A sentence without its code and without what is in parentheses. */
const bare = (sentence: string): string => sentence.replaceAll(/`[^`]*`/g, 'Code').replaceAll(/\([^()]*\)/g, '')
const isOne = (sentence: string): boolean =>
  /[.)`*]$/.test(sentence) && !/[.;?!]\**\s+(?:[A-Z(]|svc )/.test(bare(sentence)) && sentence.split(' ').length <= 40

test('each row of the specification is one sentence of a rule, of at most 40 words', () => {
  expect(strayRows(read('docs/spec.md'))).toEqual([])
  expect(promised.flatMap(({ sentences }) => sentences).filter((sentence) => !isOne(sentence))).toEqual([])
})

/** The fragment of a link to a heading, as GitHub makes it. */
const fragmentOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-')

test('each rule that behavior.md names is in the chapter to which its link leads', () => {
  const links = [...read('docs/behavior.md').matchAll(/\[([A-Z]\d+)\]\(spec\.md#([\w-]+)\)/g)].map(([, id, to]) => [
    id,
    to,
  ])
  const chapters = new Map(promised.map(({ id, section }) => [id, fragmentOf(section)]))
  expect(links.length).toBeGreaterThan(40)
  expect(links.filter(([id = '', to]) => chapters.get(id) !== to)).toEqual([])
})

test('a planted row of two sentences, without an end, or of another form is detected', () => {
  expect(
    ['One `a. B` thing (of two. Or three).', 'A thing. And another.', 'A thing', 'word '.repeat(41)].map(isOne),
  ).toEqual([true, false, false, false])
  const rows = ['| rule | says |', '|---|---|', '| R1 | One. |', '| R1 |', '| r2 | Two. |', '- **R3** three', '1. four']
  expect(strayRows(rows.join('\n'))).toEqual(rows.slice(3))
})

test('no test names an id that the specification does not have', () => {
  expect(tests.filter(({ ids }) => ids.some((id) => !promiseIds.has(id)))).toEqual([])
})

test('each promise has a test, except those marked later', () => {
  const proved = new Set(tests.flatMap(({ ids }) => ids))
  expect(promised.filter(({ id, later }) => !later && !proved.has(id)).map(({ id }) => id)).toEqual([])
})

test('a planted promise without a test is detected, and so is one marked later', () => {
  const spec =
    '# One\n## Routes\n| R1 | 2.1 | A route. |\n| R1 | Two. |\n# Later\n## Routes (later)\n| R9 | A route. |\n'
  expect(promises(spec).map(({ id, sentences, later }) => [id, sentences, later])).toEqual([
    ['R1', ['A route.', 'Two.'], false],
    ['R9', ['A route.'], true],
  ])
  const ids = promises('| R1 | One. |\n| R2 | Two. |\n| R1 | Three. |\n').map(({ id }) => id)
  expect(ids).toEqual(['R1', 'R2', 'R1'])
  expect(
    specTests('a.test.ts', "test('R1 R2 a thing', () => {})\ntest('nothing', () => {})\n").map(({ ids }) => ids),
  ).toEqual([['R1', 'R2']])
  expect(conformancePage(promises(spec), [])).toContain('### R1\n\n- **no test**')
})
