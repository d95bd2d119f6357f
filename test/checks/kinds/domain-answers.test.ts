import { describe, expect, onTestFinished, test } from 'vitest'
import { rdapAnswers } from '../../../src/core/service/health/rdap-answers.ts'
import { backendsOfTier, twoNodes } from '../../support/store/data-fixture.ts'

/** A file of the account in memory. */
function fileOf(text?: string) {
  const file = { text, writes: 0 }
  const store = {
    read: async () => file.text,
    write: async (next: string) => {
      file.text = next
      file.writes += 1
    },
  }
  return { file, store }
}
const withoutStore = () => Promise.resolve(undefined)

describe('answers of registries without a store', () => {
  test('H91 are in the file of the account, where another process finds them', async () => {
    const { store } = fileOf()
    await rdapAnswers(store, withoutStore).write('a', '1')
    await rdapAnswers(store, withoutStore).write('b', '2')
    await rdapAnswers(store, withoutStore).write('a', '3')
    const later = rdapAnswers(store, withoutStore)
    expect([await later.read('a'), await later.read('b'), await later.read('c')]).toEqual(['3', '2', undefined])
  })

  test('H91 are at most 500, the latest', async () => {
    const { store, file } = fileOf(JSON.stringify(Array.from({ length: 500 }, (_, n) => [String(n), 'x'])))
    const answers = rdapAnswers(store, withoutStore)
    await answers.write('new', '1')
    expect(JSON.parse(file.text ?? '')).toHaveLength(500)
    expect([await answers.read('new'), await answers.read('498'), await answers.read('499')]).toEqual([
      '1',
      'x',
      undefined,
    ])
  })

  test.each(['', 'x', '{}', 'null', '[1, null, ["a"]]'])('H91 are forgotten if the file is %j', async (text) => {
    const { store } = fileOf(text)
    const answers = rdapAnswers(store, withoutStore)
    expect(await answers.read('a')).toBeUndefined()
    await answers.write('a', '1')
    expect(await answers.read('a')).toBe('1')
  })

  test('H91 are in the file while the store cannot be used, and in none without a folder that can be written', async () => {
    const { store } = fileOf()
    const broken = () => Promise.reject(new Error('the store does not answer'))
    await rdapAnswers(store, broken).write('a', '1')
    expect(await rdapAnswers(store, broken).read('a')).toBe('1')
    const closed = { read: () => Promise.reject(new Error('EACCES')), write: () => Promise.reject(new Error('EACCES')) }
    for (const file of [undefined, closed]) {
      await rdapAnswers(file, broken).write('a', '1')
      expect(await rdapAnswers(file, broken).read('a')).toBeUndefined()
    }
  })
})

describe.each(backendsOfTier())('answers of registries in $name', ({ start, fresh, stop }) => {
  test('H91 are there for every process, and the file has none', async () => {
    await start()
    onTestFinished(async () => void (await stop()))
    const { data, other } = await twoNodes(fresh, '')
    onTestFinished(async () => void (await Promise.all([data.close(), other.close()])))
    const { store, file } = fileOf()
    const [here, there] = [data, other].map((one) => rdapAnswers(store, async () => one.readings))
    await here?.write('a', '1')
    await here?.write('b', '2')
    expect([await there?.read('a'), await there?.read('b'), await there?.read('c')]).toEqual(['1', '2', undefined])
    await there?.write('a', '3')
    expect(await here?.read('a')).toBe('3')
    expect(file.writes).toBe(0)
  })
})
