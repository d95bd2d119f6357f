/**
 * Text that somebody else wrote, made safe to show and to embed (K6): without terminal escapes, control and
 * bidirectional characters, invisible formatting, and the user information of URLs. Peers, servers, files and the
 * arguments of a command are hostile until their text has been here, and no other code does this.
 */

/** CSI, OSC, DCS/SOS/PM/APC and two-character sequences, in their 7-bit and 8-bit forms. */
const escapes =
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x9d)[^\x07\x1b\x80-\x9f]*(?:\x07|\x1b\\|\x9c)|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x80-\x9f]*(?:\x1b\\|\x9c)|\x1b[ -/]*[0-Z\\^-~]/g
const breaks = /\r\n?|[\v\f\x85\u2028\u2029]/g
/** Controls but for tab and line feed; bidi controls; invisible formatting, tags, noncharacters. */
const invisible =
  /[\0-\x08\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff\u{e0000}-\u{e007f}]/gu
/** Most text is nothing else, and to compile the patterns above costs a short command more than its answer. */
const printableAscii = /^[ -~]*$/
/** User information of a URL: a password that slipped into a message must not travel on. */
const userInfo = /:\/\/[^\s/?#]*@/g

/** Safe text that may hold tabs and line feeds; every other kind of line end becomes a line feed. Nothing is cut. */
export function sanitizeText(text: string): string {
  return (printableAscii.test(text) ? text : withoutInvisible(text)).replace(userInfo, '://***@').trim()
}

const withoutInvisible = (text: string): string =>
  text.replace(escapes, '').replace(breaks, '\n').replace(invisible, '').toWellFormed()

/** Safe text on one line. */
export const sanitizeLine = (text: string): string => sanitizeText(text).replace(/\s+/g, ' ')

/**
 * Safe text on one line of at most `max` characters, the last of them `…` where something was cut. `max` also
 * bounds what the patterns see, so that what they cost does not depend on who wrote the text.
 */
export function sanitizeAndCut(text: string, max: number): string {
  const line = sanitizeLine(text.slice(0, max * 8))
  if (line.length <= max) return line
  const characters = Array.from(line)
  return characters.length > max ? `${characters.slice(0, max - 1).join('')}…` : line
}
