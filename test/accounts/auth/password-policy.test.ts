import { dictionary } from '@zxcvbn-ts/language-common'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { refusal } from '../../../src/core/accounts/auth/password-policy.ts'
import { runsOf } from '../../support/suite/runs.ts'

const common = (dictionary['passwords-common'] ?? []).slice(0, 10_000).map(String)
const diceware = (dictionary['diceware-common'] ?? []).map(String)

/** Mulberry32: the same numbers in each run, so that a failure can be repeated. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

const refused = async (passwords: readonly string[]): Promise<readonly string[]> => {
  const outcomes = await Promise.all(passwords.map(async (one) => [one, await refusal(one, [])] as const))
  return outcomes.flatMap(([one, why]) => (why === undefined ? [] : [one]))
}

const tries = runsOf(10_000)
const passphrase = (below: (most: number) => number, words: readonly string[], separator: string): string =>
  Array.from({ length: 4 }, () => words[below(words.length)]).join(separator)

describe('common passwords', () => {
  test.each([
    ['Admin@123', 'admin'],
    ['Admin@2026!', 'admin'],
    ['Welcome@123', 'welcome'],
    ['welcome#1#2#3', 'welcome'],
    ['Administrator@1', 'administrator'],
    ['Qwerty@12345', 'qwerty'],
    ['root@2026!', 'root'],
    ['2026!Summer!', 'summer'],
    ['$ecret!2', 'secret'],
    ['we1come!!', 'welcome'],
    ['P\u00e4ssw0rd#9', 'password'],
    ['pass-word-1', 'password'],
    ['admin1admin!', 'admin, twice'],
    ['!QAZ2wsx', 'columns of keys'],
    ['qwertzuiop77', 'a row of keys'],
    ['123456@123', '123456'],
  ])('P4 %s is refused, because it is %s with little around it', async (password) => {
    expect(await refusal(password, [])).toContain('attackers try first')
  })

  test('P4 the refusal says what to do', async () => {
    expect(await refusal('Admin@123', [])).toBe(
      'is a common password, which attackers try first: use several unrelated words, or a password manager',
    )
  })

  test('P4 each of the 10,000 most common passwords is refused, alone and with a year and a sign', async () => {
    const long = common.filter((word) => word.length >= 8)
    expect(await refused(long)).toEqual(long)
    const words = common.filter((word) => /^[a-z]{4,}$/.test(word)).map((word) => `${word}@2026`)
    expect(words.length).toBeGreaterThan(5_000)
    expect(await refused(words)).toEqual(words)
  })

  test.each([' ', '-', '', '1'])(
    'P4 no passphrase of four random words with "%s" between is refused',
    async (separator) => {
      const below = numbers(4)
      expect(await refused(Array.from({ length: tries }, () => passphrase(below, diceware, separator)))).toEqual([])
    },
  )

  test('P4 a passphrase of four words is accepted even if each of them is a common password', async () => {
    const below = numbers(5)
    const words = common.filter((word) => /^[a-z]{4,}$/.test(word))
    expect(await refused(Array.from({ length: tries }, () => passphrase(below, words, ' ')))).toEqual([])
  })

  test.each([
    ['ASCII', Array.from({ length: 94 }, (_, at) => String.fromCharCode(33 + at)).join('')],
    ['letters and digits', 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'],
    ['small letters', 'abcdefghijklmnopqrstuvwxyz'],
    ['digits and signs', '0123456789!@#$%^&*()'],
  ])('P4 no random password of 12 characters is refused (%s)', async (_, alphabet) => {
    const below = numbers(6)
    const random = (): string => Array.from({ length: 12 }, () => alphabet[below(alphabet.length)]).join('')
    expect(await refused(Array.from({ length: tries }, random))).toEqual([])
  })

  test('P4 what remains after stripping does not matter if the stripped part carries more', async () => {
    const stripped = fc.stringMatching(/^[2-9#%&*+=?]{10,14}$/)
    const remainder = fc.constantFrom('a', 'ab', 'sex', 'love', 'admin', 'monkey')
    await fc.assert(
      fc.asyncProperty(stripped, remainder, fc.boolean(), async (random, word, before) => {
        // Repetitions and sequences carry nothing, so they are left out here.
        fc.pre(new Set(random).size >= 9 && !/(.)\1|234|345|456|567|678|789|432|543|654|765|876|987/.test(random))
        expect(await refusal(before ? random + word : word + random, [])).toBeUndefined()
      }),
      { numRuns: runsOf(500), seed: 7 },
    )
  })

  test('P4 a remainder of one or two letters is not looked up', async () => {
    for (const password of ['48!a29#5', 'x7#29!04', '6!ab92#4']) expect(await refusal(password, [])).toBeUndefined()
  })
})
