import { createRequire } from 'node:module'
import type * as Re2 from 're2js'

/**
 * RE2 decides in time linear in the text whether a pattern matches, but its syntax only resembles JavaScript's: `\s`, `.`,
 * `$` and the flag `i` mean something else, and `\A` and `[[:alpha:]]` exist. A pattern is therefore rewritten part by
 * part, by JavaScript's meaning of each part, and one with any other part is not run by RE2.
 */

/**
 * Maximum instructions of a compiled pattern: the time for a text is at most proportional to their number, about 0.6 s of
 * processor time for 64 KiB. `\d{1,100}` has about 200.
 */
const maxInstructions = 250

const lineEnds = '\\n\\r\\x{2028}\\x{2029}'
const blanks = '\\t-\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}'
const noBlanks =
  '\\x{0}-\\x{8}\\x{e}-\\x{1f}!-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}' +
  '\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}\\x{ff00}-\\x{10ffff}'
/** Escapes that stand for several characters, as they are written within a class of RE2. */
const sets: Readonly<Record<string, string>> = { d: '\\d', D: '\\D', w: '\\w', W: '\\W', s: blanks, S: noBlanks }
const controls: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13 }

/** Thrown inside this module for a part that has no equal in RE2, or that is not worth one. */
class UnsupportedError extends Error {}

const hex = (code: number): string => `\\x{${code.toString(16)}}`

/**
 * The half of a surrogate pair as a character of its own, beyond those that texts use: without the flag `u`, JavaScript
 * takes a pair for two characters.
 */
const half = (unit: number): number => unit - 0xd800 + 0xf_0000
const isHalf = (code: number): boolean => code >= 0xd800 && code <= 0xdfff

const escapeSequence =
  /\\(?:x([\dA-Fa-f]{2})|u([\dA-Fa-f]{4})|u\{([\dA-Fa-f]{1,6})\}|c([A-Za-z])|(0)(?!\d)|([tnvfr])|([dDwWsS])|([^A-Za-z0-9]))/y
const groupStart = /\((?:\?:|\?<[A-Za-z_$][\w$]*>|(?!\?))/y
const quantifier = /(?:[*+?]|\{(\d+)(?:,(\d*))?\})\??/y

/** One character by its code, or the set of an escape. */
type Part = { readonly code: number } | { readonly set: string }

/** Rewrites one pattern. */
class Rewriter {
  readonly #source: string
  readonly #ignoreCase: boolean
  readonly #multiline: boolean
  readonly #dotAll: boolean
  readonly #unicode: boolean
  #at = 0

  constructor(source: string, flags: string) {
    this.#source = source
    this.#ignoreCase = flags.includes('i')
    this.#multiline = flags.includes('m')
    this.#dotAll = flags.includes('s')
    this.#unicode = flags.includes('u')
    // Together they fold letters beyond ASCII into the sets of letters.
    if (this.#ignoreCase && this.#unicode) throw new UnsupportedError()
  }

  rewrite(): string {
    let depth = 0
    let rewritten = ''
    let isStart = true
    while (this.#at < this.#source.length) {
      const char = this.#source[this.#at] ?? ''
      const wasStart = isStart
      isStart = char === '|'
      if (this.#take(groupStart) !== undefined) {
        depth += 1
        rewritten += '(?:'
      } else if (char === ')' || char === '|') {
        depth -= char === ')' ? 1 : 0
        rewritten += char
        this.#at += 1
      } else if (char === '^' || char === '$') {
        this.#at += 1
        rewritten += this.#anchor(char, depth === 0, wasStart)
      } else rewritten += this.#repeated() ?? this.#single(char)
    }
    return rewritten
  }

  #take(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#source)
    if (match) this.#at += match[0].length
    return match ?? undefined
  }

  /**
   * The lines of RE2 end with \n only. At the start and at the end of an alternative, the character that ends a line may
   * be part of the match, as nobody asks where the match is.
   */
  #anchor(char: string, isOutermost: boolean, isStart: boolean): string {
    if (!this.#multiline) return char === '^' ? '\\A' : '\\z'
    if (!isOutermost) throw new UnsupportedError()
    if (char === '^' && isStart) return `(?:\\A|[${lineEnds}])`
    const next = this.#source[this.#at]
    if (char === '$' && (next === undefined || next === '|')) return `(?:[${lineEnds}]|\\z)`
    throw new UnsupportedError()
  }

  #repeated(): string | undefined {
    const match = this.#take(quantifier)
    if (match && Math.max(Number(match[1] ?? 0), Number(match[2] ?? 0)) > 1_000) throw new UnsupportedError()
    return match?.[0]
  }

  #single(char: string): string {
    if (char === '.') {
      this.#at += 1
      return this.#dotAll ? '(?s:.)' : `[^${lineEnds}]`
    }
    if (char === '[') return this.#class()
    if (this.#source.startsWith('\\b', this.#at) || this.#source.startsWith('\\B', this.#at)) {
      this.#at += 2
      return this.#source.slice(this.#at - 2, this.#at)
    }
    if (char === '(') throw new UnsupportedError()
    const part = this.#part()
    if ('set' in part) return `[${part.set}]`
    const { code } = part
    if (this.#ignoreCase) return `[${this.#range(code, code)}]`
    if (this.#unicode || code <= 0xffff) return hex(!this.#unicode && isHalf(code) ? half(code) : code)
    const both = String.fromCodePoint(code)
    // A quantifier behind a pair repeats its second half alone, as in JavaScript.
    return hex(half(both.charCodeAt(0))) + hex(half(both.charCodeAt(1)))
  }

  /** A character or a set, in a class or outside. */
  #part(): Part {
    if (this.#source[this.#at] !== '\\') {
      const code = this.#source.codePointAt(this.#at) ?? 0
      this.#at += code > 0xffff ? 2 : 1
      return { code }
    }
    const match = this.#take(escapeSequence)
    if (!match) throw new UnsupportedError()
    const [, two, four, any, control, zero, letter, set, itself] = match
    if (set !== undefined && sets[set] !== undefined) return { set: sets[set] }
    if (letter !== undefined && controls[letter] !== undefined) return { code: controls[letter] }
    if (zero !== undefined) return { code: 0 }
    if (control !== undefined) return { code: control.charCodeAt(0) % 32 }
    if (itself !== undefined && !isHalf(itself.charCodeAt(0))) return { code: itself.charCodeAt(0) }
    const digits = two ?? four ?? (this.#unicode ? any : undefined)
    const code = digits === undefined ? Number.NaN : Number.parseInt(digits, 16)
    // Escapes of two halves make one character with the flag `u`.
    if (Number.isNaN(code) || isHalf(code)) throw new UnsupportedError()
    return { code }
  }

  #class(): string {
    this.#at += 1
    const isNegated = this.#source[this.#at] === '^'
    if (isNegated) this.#at += 1
    let items = ''
    while (this.#source[this.#at] !== ']') {
      const from = this.#member()
      const isRange = this.#source[this.#at] === '-' && this.#source[this.#at + 1] !== ']'
      if ('set' in from) {
        if (isRange) throw new UnsupportedError()
        items += from.set
        continue
      }
      if (isRange) this.#at += 1
      const to = isRange ? this.#member() : from
      if ('set' in to) throw new UnsupportedError()
      items += this.#range(from.code, to.code)
    }
    this.#at += 1
    if (items === '') return isNegated ? '(?s:.)' : '[^\\x{0}-\\x{10ffff}]'
    return `[${isNegated ? '^' : ''}${items}]`
  }

  #member(): Part {
    if (!this.#source.startsWith('\\b', this.#at)) return this.#part()
    this.#at += 2
    return { code: 8 }
  }

  /** A range of characters within a class, with their other case where the flag `i` asks for it. */
  #range(from: number, to: number): string {
    if (!this.#unicode && to >= 0xd800 && (from <= 0xdfff || to > 0xffff)) throw new UnsupportedError()
    const range = `${hex(from)}-${hex(to)}`
    if (!this.#ignoreCase) return range
    // Which letters beyond these are the same but for their case differs between JavaScript and RE2.
    if (to > 0xfe || (from <= micro && to >= micro)) throw new UnsupportedError()
    return range + letters.map((row) => otherCase(from, to, row)).join('')
  }
}

/** The micro sign, whose capital is a Greek letter. */
const micro = 0xb5
/** Letters up to U+00FE: the first, the last, and how far away their other case lies. */
const letters = [
  [0x41, 0x5a, 32],
  [0x61, 0x7a, -32],
  [0xc0, 0xd6, 32],
  [0xd8, 0xde, 32],
  [0xe0, 0xf6, -32],
  [0xf8, 0xfe, -32],
] as const

/** The letters of a range in their other case, as a range within a class; empty when there are none. */
function otherCase(from: number, to: number, [first, last, distance]: (typeof letters)[number]): string {
  const low = Math.max(from, first)
  const high = Math.min(to, last)
  return low > high ? '' : `${hex(low + distance)}-${hex(high + distance)}`
}

/**
 * The same pattern in the syntax of RE2, or undefined for one that RE2 cannot run or would run otherwise, such as
 * look-around and back-references. `source` and `flags` are those of a valid RegExp.
 */
function toRe2(source: string, flags: string): string | undefined {
  try {
    return new Rewriter(source, flags).rewrite()
  } catch (error) {
    if (error instanceof UnsupportedError) return undefined
    throw error
  }
}

function compile(source: string, flags: string): Re2.RE2JS | undefined {
  const pattern = toRe2(source, flags)
  if (pattern === undefined) return undefined
  // Loaded only for a pattern, and synchronously, because expectations are compared synchronously. Reading svc.yaml loads
  // it first, so that no run of `svc serve` opens its file.
  const { RE2JS, RE2JSException } = createRequire(import.meta.url)('re2js') as typeof Re2
  try {
    const program = RE2JS.compile(pattern)
    return program.programSize() > maxInstructions ? undefined : program
  } catch (error) {
    // Repeats within repeats that are too large together.
    if (error instanceof RE2JSException) return undefined
    throw error
  }
}

/**
 * Whether RE2 can run a valid regular expression.
 *
 * @example
 * ```ts
 * isLinear('^a+$', '') // true
 * isLinear('(a)\\1', '') // false
 * ```
 */
export const isLinear = (source: string, flags: string): boolean => compile(source, flags) !== undefined

/**
 * Returns the test of a valid regular expression: what `new RegExp(source, flags).test` returns, in time linear in the
 * text. Returns undefined when RE2 cannot run it.
 *
 * @example
 * ```ts
 * linearTest('^a+$', '')?.('aaa') // true
 * ```
 */
export function linearTest(source: string, flags: string): ((text: string) => boolean) | undefined {
  const program = compile(source, flags)
  if (!program) return undefined
  return flags.includes('u') ? (text) => program.test(text) : (text) => program.test(withHalves(text))
}

const withHalves = (text: string): string =>
  text.replace(/[\ud800-\udfff]/g, (unit) => String.fromCodePoint(half(unit.charCodeAt(0))))
