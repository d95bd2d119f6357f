import { expect, test } from 'vitest'
import { lazy, lazyMethods, madeOnUse } from '../../src/core/base/lazy.ts'

test('a success is created once, for all callers', async () => {
  let made = 0
  const value = lazy(async () => {
    made += 1
    return made
  })
  expect(value.peek()).toBeUndefined()
  expect(await Promise.all([value.get(), value.get()])).toEqual([1, 1])
  expect([await value.get(), await value.peek(), made]).toEqual([1, 1, 1])
})

test('a failure is shared by the callers that wait for it, and by no later one', async () => {
  let attempts = 0
  const value = lazy(async (works: boolean) => {
    attempts += 1
    if (!works) throw new Error(`attempt ${attempts}`)
    return attempts
  })
  const both = await Promise.allSettled([value.get(false), value.get(true)])
  expect(both.map((one) => one.status === 'rejected' && (one.reason as Error).message)).toEqual([
    'attempt 1',
    'attempt 1',
  ])
  expect(value.peek()).toBeUndefined()
  expect(await value.get(true)).toBe(2)
  expect(await value.get(false)).toBe(2)
})

test('a caller can retry at once after a failure, and does not get the same failure again', async () => {
  let attempts = 0
  const value = lazy(async () => {
    attempts += 1
    if (attempts === 1) throw new Error('too many open files')
    return attempts
  })
  expect(await value.get().catch(() => value.get())).toBe(2)
})

test('an exception before there is a promise is handled in the same way', async () => {
  let attempts = 0
  const value = lazy((): Promise<number> => {
    attempts += 1
    if (attempts === 1) throw new Error('at once')
    return Promise.resolve(attempts)
  })
  await expect(value.get()).rejects.toThrow('at once')
  expect(await value.get()).toBe(2)
})

test('the methods of an object are loaded by the first call, and again after a failed attempt', async () => {
  let attempts = 0
  const load = lazy(async () => {
    attempts += 1
    if (attempts === 1) throw new Error('too many open files')
    return { unit: 's', say: async (text: string) => `${text} of attempt ${attempts}` }
  })
  const methods = lazyMethods(load.get)
  expect(attempts).toBe(0)
  await expect(methods.say('word')).rejects.toThrow('too many open files')
  expect(await methods.say('word')).toBe('word of attempt 2')
  expect(await (await Promise.resolve(methods)).say('word')).toBe('word of attempt 2')
})

test('a member is made when it is first used, once, and no other is', () => {
  const made: string[] = []
  const group = (name: string) => (from: string) => {
    made.push(`${name} of ${from}`)
    return { name }
  }
  const over = madeOnUse<string, Record<'users' | 'keys', object>>({ users: group('users'), keys: group('keys') })
  const [first, second] = [over('first'), over('second')]
  expect(made).toEqual([])
  expect(first.users).toBe(first.users)
  expect(second.keys).toEqual({ name: 'keys' })
  expect(made).toEqual(['users of first', 'keys of second'])
})
