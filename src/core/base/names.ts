/** The rule for a new password, for prompts (P4): every password of 8 characters is long enough. */
export const passwordRule = 'A password has 8 characters or more, is not a common one and is not like the name.'

/** Characters. */
const maxLength = 128

/**
 * Control characters, invisible ones and blanks other than spaces (which make two names look alike), line breaks and
 * lone surrogates.
 */
const invisible = () => /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u

/**
 * @example
 * ```ts
 * hasInvisible('bob\u200b') // true
 * ```
 */
export const hasInvisible = (text: string): boolean => invisible().test(text)

/**
 * The rule that the name of a user, a key, a role or a permission breaks, for a sentence that begins with it; undefined
 * if it breaks none. A blank name is not checked here.
 *
 * @example
 * ```ts
 * nameMistake('Ops') // undefined
 * nameMistake('x'.repeat(129)) // 'may have at most 128 characters'
 * ```
 */
export function nameMistake(name: string): string | undefined {
  if (name.length > maxLength) return `may have at most ${maxLength} characters`
  if (!name.isWellFormed() || hasInvisible(name)) return 'must not contain control or invisible characters'
  return name === name.trim() ? undefined : 'must not begin or end with whitespace'
}

/** Admin in characters that look like its letters on a screen, in lower case and without accents. */
const adminLookalike = /^[aаαɑꭺᗅꓮ][dԁđɖꭰꮷᗞᗪꓓ](?:[mмμɱꮇᗰꓟ]|rn)[iіιıɩɪӏꭵꓲl1|!][nոռпηνɴŋꓠ]$/u

/**
 * Whether the name of a role looks like Admin and is another one.
 *
 * @example
 * ```ts
 * looksLikeAdmin('Аdmin') // true
 * looksLikeAdmin('Ops') // false
 * ```
 */
export function looksLikeAdmin(role: string): boolean {
  if (role === 'Admin' || role.length > maxLength) return false
  const letters = role.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()
  return adminLookalike.test(letters)
}

/** Letters of other scripts, and figures, that look like a letter from a to z on a screen. */
const alike: Readonly<Record<string, string>> = {
  a: 'аαɑ',
  b: 'вβь',
  c: 'сϲ',
  d: 'ԁɗ',
  e: 'еεҽ',
  g: 'ɡ',
  h: 'һн',
  i: 'іιıɩ1|!',
  j: 'ј',
  k: 'κк',
  l: 'ӏ',
  m: 'мμ',
  n: 'пոη',
  o: 'оοσ0',
  p: 'рρ',
  q: 'ԛ',
  r: 'г',
  s: 'ѕ5$',
  t: 'тτ',
  u: 'υս',
  v: 'ѵν',
  w: 'ѡωԝ',
  x: 'хχ',
  y: 'уγү',
}
const letterOf: ReadonlyMap<string, string> = new Map(
  Object.entries(alike).flatMap(([letter, others]) => Array.from(others, (other) => [other, letter] as const)),
)

/**
 * Other names for which people could take this one: in compatibility form, without accents, in letters from a to z, and
 * with `l` for what may be an `i`. At most four; empty for most names.
 *
 * @example
 * ```ts
 * namesItLooksLike('аlex') // ['alex']
 * ```
 */
export function namesItLooksLike(name: string): readonly string[] {
  const compatible = name.normalize('NFKC')
  const folded = compatible.toLowerCase().normalize('NFKD').replace(/\p{M}/gu, '')
  const latin = Array.from(folded, (letter) => letterOf.get(letter) ?? letter).join('')
  // Capital I, and what stands for an i above, may also stand for an l.
  const asL = Array.from(folded, (letter) => (/[i1|!іιı]/.test(letter) ? 'l' : (letterOf.get(letter) ?? letter))).join(
    '',
  )
  return [...new Set([compatible, folded, latin, asL, latin.replaceAll('rn', 'm')])].filter((one) => one !== name)
}

/**
 * Warns of roles that look like Admin, with the characters by which they differ. Undefined if there are none.
 *
 * @example
 * ```ts
 * adminWarning(['Ops', 'Аdmin']) // '"Аdmin" looks like Admin (it contains U+0410), but is another role'
 * ```
 */
export function adminWarning(roles: readonly string[]): string | undefined {
  const texts = roles.filter(looksLikeAdmin).map((role) => {
    const foreign = Array.from(role)
      .filter((character) => character > '~')
      .map(codePoint)
    return `"${role}" looks like Admin${foreign.length === 0 ? '' : ` (it contains ${foreign.join(', ')})`}, but is another role`
  })
  return texts.length === 0 ? undefined : texts.join('; ')
}

const codePoint = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`

/**
 * Whether two names differ at most in letter case.
 *
 * @example
 * ```ts
 * sameExceptCase('Deploy', 'deploy') // true
 * sameExceptCase('Deploy', 'Deployer') // false
 * ```
 */
export const sameExceptCase = (one: string, other: string): boolean =>
  one.normalize('NFC').toLowerCase() === other.normalize('NFC').toLowerCase()

/**
 * Requested names that are not held, each with a held one that differs only in letter case.
 *
 * @example
 * ```ts
 * otherCase(['deploy', 'Ops'], ['Deploy']) // [['deploy', 'Deploy']]
 * ```
 */
export const otherCase = (
  requested: readonly string[],
  current: readonly string[],
): readonly (readonly [requested: string, other: string])[] =>
  requested.flatMap((name) => {
    const other = current.includes(name) ? undefined : current.find((each) => sameExceptCase(each, name))
    return other === undefined ? [] : [[name, other] as const]
  })
