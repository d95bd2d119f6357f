const escapes = /\x1b\[[0-?]*[ -/]*[@-~]/g
/** Line ends and other controls; then what is invisible or turns text around. */
const controls = /[\p{Cc}\p{Zl}\p{Zp}]+/gu
const unseen = /\p{Cf}/gu
const userInfo = /:\/\/[^\s/?#@]*@/g

/** Text that a server wrote, made fit for a message of ours: one line without controls (K6), cut at `longest`. */
export function said(text: string, longest = 300): string {
  const plain = text
    .slice(0, longest * 8)
    .replace(escapes, '')
    .replace(controls, ' ')
    .replace(unseen, '')
    .replace(userInfo, '://***@')
    .replace(/\s+/g, ' ')
    .toWellFormed()
    .trim()
  return plain.length <= longest ? plain : `${plain.slice(0, longest - 1).toWellFormed()}…`
}
