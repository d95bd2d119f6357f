import { invalidField } from '../../base/errors.ts'
import type { User } from '../../store/index.ts'
import { commonPasswords, fold } from './common-passwords.ts'
import type { Problems } from './names.ts'

/** In bytes of UTF-8 (P4). */
export const shortest = 8
export const maxPasswordBytes = 1_024

/** Shorter names occur in good passwords by chance. */
const minNameLength = 4

/**
 * Why a new password is refused, or undefined when it is acceptable. `names` are the user's own: user name, display
 * name, e-mail address. There are no rules about kinds of characters: length and originality count.
 */
export async function refusal(
  password: string,
  names: readonly string[],
  least = shortest,
): Promise<string | undefined> {
  if (!password.isWellFormed()) return 'is not valid Unicode'
  const bytes = Buffer.byteLength(password)
  if (bytes < Math.max(shortest, least)) {
    const need = Math.max(shortest, least)
    return `must have at least ${need} bytes (${need} ASCII characters)`
  }
  if (bytes > maxPasswordBytes) return `may have at most ${maxPasswordBytes} bytes`
  if (isPattern(password) || isCommon(password, await commonPasswords())) return common
  if (names.some((name) => isSimilar(password, name))) return 'is too similar to the name or e-mail address of the user'
  return undefined
}

/** The problems with a new password for this user, as fields of the response. `field` is the name of its field. */
export async function passwordProblems(
  field: string,
  password: string,
  { userName, email, displayName }: Pick<User, 'userName'> & Partial<Pick<User, 'email' | 'displayName'>>,
): Promise<Problems> {
  const names = [userName, email, displayName].filter((name) => name !== undefined)
  const reason = await refusal(password, names)
  return reason === undefined ? [] : [invalidField(field, reason)]
}

const common = 'is a common password, which attackers try first: use several unrelated words, or a password manager'

/** The letters of the shortest word that is looked up. Shorter remainders say nothing about a password. */
const minWordLength = 3
/** The longest common password has fewer characters. */
const maxWordLength = 32
/** The number of characters that any word may have around it and still count as the whole password. */
const littleAround = 5

/**
 * Whether a common password is at the core of this one. The core is what remains when digits and signs are stripped
 * from both ends. Because `$ecret` and `1qaz` begin with a part of the word, each shorter strip is looked up too.
 *
 * The rest is stripped only if it carries little: at most as much as the word, or 5 characters. So `Admin@123` is
 * `admin`, and a random password whose letters happen to spell a word is accepted.
 */
function isCommon(password: string, words: ReadonlySet<string>): boolean {
  // Code points, so that a strip never cuts one in half.
  const text = Array.from(fold(password))
  const whole = text.join('')
  if (words.has(whole) || isRepeatedWord(whole, words)) return true
  const first = text.findIndex(isLetter)
  if (first === -1) return isCommonNumber(whole, words)
  const last = text.findLastIndex(isLetter)
  for (let start = Math.max(0, last - maxWordLength); start <= first; start += 1) {
    for (let end = Math.min(text.length, start + maxWordLength); end > last; end -= 1) {
      const word = spellings(text.slice(start, end).join('')).find((spelling) => words.has(spelling))
      if (word === undefined || word.length < minWordLength) continue
      const around = carried(text.slice(0, start)) + carried(text.slice(end))
      if (around <= Math.max(word.length, littleAround)) return true
    }
  }
  return false
}

const isLetter = (text: string): boolean => /\p{L}/u.test(text)

/** Shorter numbers occur by chance. */
const commonNumber = 6

/** A common number with little around it. Its digits are not stripped, so it must stand between signs. */
const isCommonNumber = (text: string, words: ReadonlySet<string>): boolean =>
  text
    .split(/\D+/)
    .some(
      (digits) =>
        digits.length >= commonNumber &&
        words.has(digits) &&
        carried(Array.from(text.replace(digits, ''))) <= littleAround,
    )

/** A word written several times, also with digits and signs in between: `admin1admin`. */
function isRepeatedWord(text: string, words: ReadonlySet<string>): boolean {
  const letters = text.replace(/[^\p{L}]+/gu, '')
  const others = Array.from(text.replace(/\p{L}+/gu, ''))
  for (let length = minWordLength; length * 2 <= letters.length && length <= maxWordLength; length += 1) {
    const word = letters.slice(0, length)
    if (!words.has(word) || letters.length % length !== 0) continue
    if (word.repeat(letters.length / length) === letters && carried(others) <= Math.max(letters.length, littleAround))
      return true
  }
  return false
}

/**
 * A word as written and with letters for the digits and signs that replace them, as all cracking tools try them. A sign
 * that separates its letters is removed: `pass-word`. Several different signs occur by chance.
 */
function spellings(text: string): readonly string[] {
  const signs = text.match(/[^\p{L}\p{N}@$!]/gu) ?? []
  const plain = new Set(signs).size === 1 ? text.replace(/[^\p{L}\p{N}@$!]/gu, '') : text
  return [text, plain, unleet(plain), unleet(plain.replace(/1/g, 'l'))]
}

/** Most of it is rows of keys, sequences or repetitions: `aaaaaaaa`, `abcabcabc`, `qwer1234`, `87654321`. */
function isPattern(password: string): boolean {
  if (/^(.{1,4}?)\1+$/su.test(password)) return true
  const text = Array.from(fold(password))
  const left = carried(text)
  return left <= fewCarried && left * 2 <= text.length
}

/** A password with more characters than these, besides its patterns, is original. */
const fewCarried = 6

const rows = ['qwertyuiop', 'qwertzuiop', 'azertyuiop', 'asdfghjkl', 'qsdfghjklm', 'zxcvbnm', 'yxcvbnm', '!@#$%^&*()']
const columns = ['1qaz', '2wsx', '3edc', '4rfv', '5tgb', '6yhn', '6zhn', '7ujm', '!qaz', '@wsx', '#edc', '$rfv']
const sequences = [...rows, ...columns, '01234567890', 'abcdefghijklmnopqrstuvwxyz']
/** Each three characters in a row, in both directions. */
const triples: ReadonlySet<string> = new Set(
  [...sequences, ...sequences.map((row) => Array.from(row).reverse().join(''))].flatMap((row) =>
    Array.from({ length: row.length - 2 }, (_, at) => row.slice(at, at + 3)),
  ),
)

/**
 * How many characters carry something. From the third on, those that repeat or continue a sequence carry nothing, and a
 * year counts as two.
 */
function carried(text: readonly string[]): number {
  const patterned = text.filter((char, at) => {
    const [before, previous] = [text[at - 2], text[at - 1]]
    return (char === previous && char === before) || triples.has(`${before}${previous}${char}`)
  })
  const years = text.join('').match(/(?<!\d)(?:19|20)\d\d(?!\d)/g) ?? []
  return text.length - patterned.length - years.length * 2
}

/** Whether a password is a name, a part of it or its reverse, with a few characters added or changed. */
function isSimilar(password: string, name: string): boolean {
  const own = bare(password)
  const written = unleet(own)
  const [local = ''] = name.split('@')
  const parts = [name, local, ...local.split(/[^\p{L}\p{N}]+/u)]
    .map(bare)
    .filter((part) => part.length >= minNameLength)
  return parts.some((part) =>
    // oxlint-disable-next-line typescript/no-misused-spread -- `bare` has left nothing that joins code points
    [part, [...part].reverse().join('')].some((form) =>
      [own, written].some(
        (password) =>
          (password.includes(form) && form.length * 2 >= password.length) || distanceUpTo(password, form, 2),
      ),
    ),
  )
}

/** The text in lower case, without signs; @, $ and ! stay within it, because they may replace letters. */
const bare = (text: string): string =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}@$!]/gu, '')
    .replace(/^[@$!]+|(?<![@$!])[@$!]+$/g, '')

const leet: Readonly<Record<string, string>> = {
  '0': 'o',
  '1': 'i',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '@': 'a',
  $: 's',
  '!': 'i',
}
const unleet = (text: string): string => text.replace(/[013457@$!]/g, (sign) => leet[sign] ?? sign)

/** Whether the edit distance is at most `most`. */
function distanceUpTo(a: string, b: string, most: number): boolean {
  if (Math.abs(a.length - b.length) > most || a.length > 256) return false
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return (row[b.length] ?? most + 1) <= most
}
