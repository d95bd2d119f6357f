import { expect, test } from 'vitest'
import { conformancePage, promises, readNamed, readPromises, specTests } from '../tools/conformance.ts'

const promised = readPromises()
const tests = readNamed()
const promiseIds = new Set(promised.map(({ id }) => id))

test('the specification has ids, and tests name them', () => {
  expect(promiseIds.size).toBe(promised.length)
  expect(promiseIds.size).toBeGreaterThan(90)
  expect(tests.length).toBeGreaterThan(500)
})

test('no test names an id that the specification does not have', () => {
  expect(tests.filter(({ ids }) => ids.some((id) => !promiseIds.has(id)))).toEqual([])
})

test('each promise has a test, except those marked later', () => {
  const proved = new Set(tests.flatMap(({ ids }) => ids))
  expect(promised.filter(({ id, later }) => !later && !proved.has(id)).map(({ id }) => id)).toEqual([])
})

test('a planted promise without a test is detected, and so is one marked later', () => {
  const spec = '# One\n## Routes\n- **R1** a route\n# Later\n## Routes (later)\n- **R9** a route\n'
  expect(promises(spec).map(({ id, later }) => [id, later])).toEqual([
    ['R1', false],
    ['R9', true],
  ])
  expect(
    specTests('a.test.ts', "test('R1 R2 a thing', () => {})\ntest('nothing', () => {})\n").map(({ ids }) => ids),
  ).toEqual([['R1', 'R2']])
  expect(conformancePage(promises(spec), [])).toContain('### R1\n\n- **no test**')
})
