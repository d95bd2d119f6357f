/**
 * Makes text from outside safe to show and to embed (K6): removes terminal escapes, control and bidirectional
 * characters, invisible formatting, and the user information of URLs. Text from peers, servers, files and command
 * arguments is hostile until it has been sanitized here. No other code does this.
 */

/** CSI, OSC, DCS/SOS/PM/APC and two-character sequences, in their 7-bit and 8-bit forms. */
const escapes =
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x9d)[^\x07\x1b\x80-\x9f]*(?:\x07|\x1b\\|\x9c)|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x80-\x9f]*(?:\x1b\\|\x9c)|\x1b[ -/]*[0-Z\\^-~]/g
const breaks = /\r\n?|[\v\f\x85\u2028\u2029]/g
/** Controls except tab and line feed; bidi controls; invisible formatting, tags, noncharacters. */
const invisible =
  /[\0-\x08\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff\u{e0000}-\u{e007f}]/gu
/** Matches most text. Compiling the patterns above would cost a short command more than its whole answer. */
const printableAscii = /^[ -~]*$/
/**
 * User information of a URL: a password in a message must not be passed on. `user` alone, as in the examples of svc, is
 * none.
 */
const userInfo = /:\/\/(?!user@[^\s/?#@]*(?:[\s/?#]|$))[^\s/?#]*@/g

/**
 * Safe text that may contain tabs and line feeds. Converts every line end to a line feed. Never truncates.
 *
 * @example
 * ```ts
 * sanitizeText('\u001b[31mred') // 'red'
 * ```
 */
export function sanitizeText(text: string): string {
  const visible = printableAscii.test(text) ? text : withoutInvisible(text)
  return (visible.includes('://') ? visible.replace(userInfo, '://***@') : visible).trim()
}

const withoutInvisible = (text: string): string =>
  text.replace(escapes, '').replace(breaks, '\n').replace(invisible, '').toWellFormed()

/**
 * Safe text on one line.
 *
 * @example
 * ```ts
 * sanitizeLine('first\n second') // 'first second'
 * ```
 */
export function sanitizeLine(text: string): string {
  const safe = sanitizeText(text)
  // Replacing single spaces by themselves would make another text, of which the engine keeps each piece.
  return otherSpace.test(safe) ? safe.replace(/\s+/g, ' ') : safe
}
/** White space other than single spaces. */
const otherSpace = /[^\S ]| {2}/

/**
 * Safe text on one line of at most `max` characters; truncated text ends in `…`. `max` also limits the input of the
 * patterns, so that the author of the text cannot make them expensive.
 *
 * @example
 * ```ts
 * sanitizeAndCut('abcdef', 4) // 'abc…'
 * ```
 */
export function sanitizeAndCut(text: string, max: number): string {
  const line = sanitizeLine(text.slice(0, max * 8))
  if (line.length <= max) return line
  const characters = Array.from(line)
  return characters.length > max ? `${characters.slice(0, max - 1).join('')}…` : line
}

/**
 * The form of a text that svc prints, which decides how a command of a CI runner in it is defused: `json` and `xml` have an
 * escape, which changes nothing for their readers; `records` (CSV, TSV, metrics) and `text` have none, so a space shows the
 * break. `verbatim` is text that obeys a rule of its own, or that another program reads.
 */
export type TextForm = 'text' | 'records' | 'json' | 'xml' | 'verbatim'

/**
 * Text in which no CI runner finds a command (K6). Runners obey what the log of a job contains: `##vso[`, `##[` and
 * `##teamcity[` anywhere in a line, `::name::` at its beginning. Wrapping, truncation and colours decide what a line
 * begins with, so this is for whole lines as they are written, not for their parts.
 *
 * @example
 * ```ts
 * withoutCommands('a ##vso[task.debug]b', 'text') // 'a # #vso[task.debug]b'
 * withoutCommands('"::debug::b"', 'json') // String.raw`"\u003a:debug\u003a:b"`
 * ```
 */
export function withoutCommands(text: string, form: TextForm): string {
  // Most texts contain none of these, and searching for them is fast.
  if (form === 'verbatim' || !['##', '#[', '::'].some((start) => text.includes(start))) return text
  if (form === 'json') return text.replace(hash, '\\u0023').replace(colon, '\\u003a')
  if (form === 'xml') return text.replace(hash, '&#35;').replace(colon, '&#58;')
  return withoutHashes(text).replace(firstColon, '$1: ').replace(colonOfName, ': ')
}
const hash = /#(?=[#[])/g
const colon = /:(?=:)/g
/** The first colon of a line, after blanks and colours. Any name may be a command: that which ends `::stop-commands::`. */
const firstColon = /^((?:[^\S\r\n\u2028\u2029]|\x85|\x1b\[[\d;]*m)*):(?=:.*::)/gm
/** Colons before a name. An IPv6 address (`[::1]:8790`) has at most four hexadecimal digits behind them. */
const colonOfName = /:(?=:(?![\da-f]{0,4}(?![\w-])))/gi

/** Text without the commands that a runner finds at any place of a line. */
export const withoutHashes = (text: string): string => text.replace(/#(?=#)/g, '# ')
