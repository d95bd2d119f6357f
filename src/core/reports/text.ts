/**
 * Text that somebody else wrote, made safe to show and to embed (K6). Nothing is cut: what goes is
 * what no reader could see or what a terminal would obey.
 */

/** CSI, OSC, DCS/SOS/PM/APC and two-character sequences, in their 7-bit and 8-bit forms. */
const escapes =
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x9d)[^\x07\x1b\x80-\x9f]*(?:\x07|\x1b\\|\x9c)|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x80-\x9f]*(?:\x1b\\|\x9c)|\x1b[ -/]*[0-Z\\^-~]/g
const breaks = /\r\n?|[\v\f\x85\u2028\u2029]/g
/** Controls but for tab and line feed; bidi controls; invisible formatting, tags, noncharacters. */
const unseen =
  /[\0-\x08\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff\u{e0000}-\u{e007f}]/gu
/** User information of a URL: a password that slipped into a message must not travel on. */
const userInfo = /:\/\/[^\s/?#]*@/g

/** Safe text that may hold tabs and line feeds; every other kind of line end has become a line feed. */
export function clean(text: string): string {
  return text
    .replace(escapes, '')
    .replace(breaks, '\n')
    .replace(unseen, '')
    .replace(userInfo, '://***@')
    .toWellFormed()
    .trim()
}

/** Safe text on one line. */
export const oneLine = (text: string): string => clean(text).replace(/\s+/g, ' ')

/** At most `length` characters, the last three being dots when something was cut. Never splits a pair. */
export function shorten(text: string, length: number): string {
  if (text.length <= length) return text
  const kept = text.slice(0, Math.max(0, length - 3))
  return `${kept.replace(/[\ud800-\udbff]$/, '').trimEnd()}...`
}

/** `1 monitor`, `2 monitors`. */
export const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`
