import fc from 'fast-check'

const surrogates = 0x800
const firstSurrogate = 0xd800

/**
 * Any code point but half of a surrogate pair, as the unit `binary` of fast-check has them. That one makes a table of the
 * 1.1 million code points, in each process, to find out whether a text could be one of its own.
 */
export const codePoints = fc.integer({ min: 0, max: 0x10ffff - surrogates }).map(
  (place) => String.fromCodePoint(place < firstSurrogate ? place : place + surrogates),
  (text) => {
    const point = typeof text === 'string' ? text.codePointAt(0) : undefined
    if (point === undefined || String.fromCodePoint(point) !== text) throw new Error('not one code point')
    if (point < firstSurrogate) return point
    if (point < firstSurrogate + surrogates) throw new Error('half of a surrogate pair')
    return point - surrogates
  },
)
