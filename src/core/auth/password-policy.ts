import { commonPasswords } from './common-passwords.ts'

/** P4, in bytes of UTF-8. */
export const shortest = 8
export const longest = 1_024

/** Names shorter than this stand in good passwords by chance. */
const tellingName = 4

/**
 * Why a password is refused when it is set, or undefined when it may be set. `names` are the user's
 * own: names, e-mail. No rule about kinds of characters: length and novelty are what counts.
 */
export function refusal(password: string, names: readonly string[], least = shortest): string | undefined {
  if (!password.isWellFormed()) return 'is not valid Unicode'
  const bytes = Buffer.byteLength(password)
  if (bytes < Math.max(shortest, least)) return `must have at least ${Math.max(shortest, least)} bytes`
  if (bytes > longest) return `may have at most ${longest} bytes`
  if (isCommon(password)) return 'is one of the passwords that are tried first'
  if (names.some((name) => isSimilar(password, name))) return 'is too similar to the name or e-mail of its user'
  return undefined
}

function isCommon(password: string): boolean {
  const plain = bare(password)
  const word = plain.replace(/^\d+|(?<!\d)\d+$/g, '')
  // One character, or a few, over and over: `aaaaaaaa`, `abcabcabc`.
  if (/^(.{1,4}?)\1+$/su.test(password)) return true
  return commonPasswords.has(plain) || commonPasswords.has(unleet(plain)) || (plain.length < 14 && commonWord(word))
}

const commonWord = (word: string): boolean => commonPasswords.has(word) || commonPasswords.has(unleet(word))

/** A name, its parts and its mirror image, with a little around it or a few letters changed. */
function isSimilar(password: string, name: string): boolean {
  const own = bare(password)
  const written = unleet(own)
  const [local = ''] = name.split('@')
  const parts = [name, local, ...local.split(/[^\p{L}\p{N}]+/u)].map(bare).filter((part) => part.length >= tellingName)
  return parts.some((part) =>
    // oxlint-disable-next-line typescript/no-misused-spread -- `bare` has left nothing that joins code points
    [part, [...part].reverse().join('')].some((form) =>
      [own, written].some(
        (given) => (given.includes(form) && form.length * 2 >= given.length) || distanceUpTo(given, form, 2),
      ),
    ),
  )
}

/** Letters and digits only, in one letter case. */
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

/** Whether at most so many letters have to be changed. */
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
