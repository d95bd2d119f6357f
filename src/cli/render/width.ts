/**
 * The characters that take two columns in a terminal: East Asian wide characters and emoji. Marks and joiners take none
 * (Unicode Standard Annex 11, for the characters likely in names and messages).
 */
const wide: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2329, 0x232a],
  [0x2e80, 0x303e],
  [0x3041, 0x3247],
  [0x3250, 0x4dbf],
  [0x4e00, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff01, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x18dff],
  [0x1aff0, 0x1b2ff],
  [0x1f200, 0x1f265],
  [0x20000, 0x3fffd],
]
/** Texts with one column per character: Latin letters, punctuation, arrows, lines, and the signs that svc shows. */
const narrow = /^[ -~\xa0-\xac\xae-\u02ff\u2010-\u2027\u2190-\u21ff\u2500-\u25fc✓✗]*$/
/** Characters that may combine several code points into one grapheme. */
const joining = () =>
  /[\p{Mark}\p{Default_Ignorable_Code_Point}\p{Extended_Pictographic}\p{Regional_Indicator}\u1160-\u11ff]/u
/** Characters without a width: marks, joiners, and the later parts of a Hangul syllable. */
const invisible = () => /^[\p{Mn}\p{Me}\p{Default_Ignorable_Code_Point}\u1160-\u11ff]$/u
const emoji = () => /^\p{Emoji_Presentation}$/u
const pictogram = () => /[\p{Extended_Pictographic}\p{Regional_Indicator}]/u

function charWidth(char: string): number {
  const code = char.codePointAt(0) ?? 0
  if (code < 0x300) return 1
  if (invisible().test(char)) return 0
  return wide.some(([from, to]) => code >= from && code <= to) || emoji().test(char) ? 2 : 1
}

let segmenter: Intl.Segmenter | undefined
/** Splits a text into graphemes, so that no cut falls inside one. */
const graphemes = (text: string): readonly string[] => {
  if (!joining().test(text)) return Array.from(text)
  segmenter ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' })
  return Array.from(segmenter.segment(text), (part) => part.segment)
}

/** A flag, a family or a coloured hand is one sign. In scripts, the parts of a cluster are side by side. */
function graphemeWidth(grapheme: string): number {
  const widths = Array.from(grapheme, charWidth)
  if (grapheme.includes('\ufe0f')) return 2
  return pictogram().test(grapheme) ? Math.max(...widths) : widths.reduce((sum, width) => sum + width, 0)
}

/** The width in columns. `text` is one line without escape sequences. */
export function width(text: string): number {
  if (narrow.test(text)) return text.length
  return graphemes(text).reduce((sum, grapheme) => sum + graphemeWidth(grapheme), 0)
}

export const padEnd = (text: string, columns: number): string => text + ' '.repeat(Math.max(0, columns - width(text)))

/** The longest start that fits, and the rest. It takes at least one character, so that loops end. */
export function splitAt(text: string, columns: number): readonly [string, string] {
  if (narrow.test(text)) {
    const at = Math.max(1, columns)
    return [text.slice(0, at), text.slice(at)]
  }
  let used = 0
  let length = 0
  for (const grapheme of graphemes(text)) {
    used += graphemeWidth(grapheme)
    if (used > columns && length > 0) break
    length += grapheme.length
  }
  return [text.slice(0, length), text.slice(length)]
}

/** Shortens a text to at most `columns`, ending in `mark` if anything was cut. */
export function cut(text: string, columns: number, mark: string): string {
  if (width(text) <= columns) return text
  const [start] = splitAt(text, Math.max(1, columns - width(mark)))
  return start.trimEnd() + mark
}

/** Preferred places to break a long word: after one of these characters. */
const breaks: ReadonlySet<string> = new Set('-/_.:,;')

/**
 * Splits a long word into pieces that fit. A piece preferably ends after a `-`, `/` and the like in the later half of
 * its line. The word is split into graphemes only once: a server may send a very long one.
 */
function piecesOf(word: string, columns: number): readonly string[] {
  const signs = graphemes(word)
  const pieces: string[] = []
  for (let from = 0; from < signs.length; ) {
    const fitting = fittingEnd(signs, from, columns)
    const end = fitting === signs.length ? fitting : endBehindBreak(signs, from, fitting)
    pieces.push(signs.slice(from, end).join(''))
    from = end
  }
  return pieces
}

/** The index at which the signs starting at `from` no longer fit. It takes at least one, so that loops end. */
function fittingEnd(signs: readonly string[], from: number, columns: number): number {
  let used = 0
  for (let at = from; at < signs.length; at += 1) {
    used += graphemeWidth(signs[at] ?? '')
    if (used > columns && at > from) return at
  }
  return signs.length
}

function endBehindBreak(signs: readonly string[], from: number, end: number): number {
  for (let at = end; at > (from + end) / 2; at -= 1) if (breaks.has(signs[at - 1] ?? '')) return at
  return end
}

/** Words up to this width are read as a whole. Longer ones, such as URLs and ids, may end anywhere. */
const wholeWords = 24

/** How many words a line of this width breaks in their middle, where nothing separates their parts. */
export const brokenWords = (text: string, columns: number): number =>
  text.split(' ').filter((word) => {
    const size = width(word)
    if (size <= columns || size > wholeWords) return false
    return piecesOf(word, columns)
      .slice(0, -1)
      .some((piece) => !breaks.has(piece.slice(-1)))
  }).length

/** Units that follow a number, with closing brackets or punctuation. */
const unit = /^(?:%|ms|s|min|h|d|days?|B|[KMGTP]iB)(?:\/s)?[)\]"'.,;:!?]*$/

/** The words before the value of a threshold: `(warn`, `fail below`. */
const bound = /(?:^|\()(?:warn|fail)(?: below)?$/

/** Whether a line never ends between two words: a number and its unit, a threshold and its value. */
const belongTogether = (last: string, word: string): boolean =>
  (/\d$/.test(last) && unit.test(word)) || (bound.test(last) && (word === 'below' || /^\d/.test(word)))

/** The words of a line. Words that belong together count as one if they fit into a line. */
export function wordsOf(text: string, columns: number): readonly string[] {
  const words: string[] = []
  for (const word of text.split(' ')) {
    const last = words.at(-1)
    const joined = `${last} ${word}`
    if (last !== undefined && belongTogether(last, word) && width(joined) <= columns) words[words.length - 1] = joined
    else words.push(word)
  }
  return words
}

/** Wraps a line between words, never between a number and its unit or a threshold and its value. A word longer than a line is split. */
export function wrap(text: string, columns: number): readonly string[] {
  if (width(text) <= columns) return [text]
  const lines: string[] = []
  let line = ''
  for (const word of wordsOf(text, columns)) {
    const joined = line === '' ? word : `${line} ${word}`
    if (width(joined) <= columns) {
      line = joined
      continue
    }
    if (line !== '') lines.push(line)
    line = ''
    for (const piece of piecesOf(word, columns)) {
      if (line !== '') lines.push(line)
      line = piece
    }
  }
  if (line !== '') lines.push(line)
  return lines
}
