import fc from 'fast-check'
import { broken, last } from './ends.ts'
import { hidden, type Piece, piece, whole } from './pieces.ts'

export type Talk = {
  readonly wholes: readonly Piece[]
  /** The piece that ends the connection, if one does. */
  readonly end: Piece | undefined
  /** The bytes that follow it. */
  readonly behind: string
  /** Where the bytes are cut into packets, of 1,000. */
  readonly cuts: readonly number[]
  readonly leaves: 'waits' | 'half-closes' | 'resets'
}

/** Bytes that may follow an end and are no request. */
export const rubbish: ReadonlySet<string> = new Set(['\0', 'x'.repeat(30_000), '0\r\n\r\n'])

/** Conversations that every reader must understand alike: so many requests, and then perhaps an end. */
export const talk: fc.Arbitrary<Talk> = fc.record({
  wholes: fc.array(whole, { maxLength: 4 }),
  end: fc.oneof(
    { weight: 2, arbitrary: fc.constant(undefined) },
    { weight: 3, arbitrary: fc.constantFrom(...last) },
    { weight: 4, arbitrary: fc.constantFrom(...broken).map((bytes) => piece('broken', 'POST', bytes)) },
  ),
  behind: fc.constantFrom('', '', hidden, hidden + hidden, `\r\n${hidden}`, ...rubbish),
  cuts: fc.oneof(
    { weight: 2, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(fc.nat(1_000), { maxLength: 5 }) },
  ),
  leaves: fc.oneof(
    { weight: 8, arbitrary: fc.constant<Talk['leaves']>('waits') },
    { weight: 1, arbitrary: fc.constantFrom<Talk['leaves']>('half-closes', 'resets') },
  ),
})

export type Noise = {
  readonly bytes: string
  readonly cuts: readonly number[]
  readonly leaves: 'half-closes' | 'resets'
}

/** Requests with bytes lost, doubled or changed: their meaning is undefined. */
export const noise: fc.Arbitrary<Noise> = fc.record({
  bytes: fc
    .tuple(
      fc.array(
        fc.oneof(
          whole,
          fc.constantFrom(...last),
          fc.constantFrom(...broken).map((bytes) => ({ bytes })),
        ),
        { minLength: 1, maxLength: 3 },
      ),
      fc.array(
        fc.tuple(
          fc.nat(10_000),
          fc.constantFrom('', '\0', '\r', '\n', ' ', ':', 'x', '\xff', '0', '\r\n', '\r\n\r\n', hidden),
          fc.nat(3),
        ),
        { maxLength: 4 },
      ),
    )
    .map(([pieces, changes]) => changes.reduce(changed, pieces.map((one) => one.bytes).join(''))),
  cuts: fc.array(fc.nat(1_000), { maxLength: 3 }),
  leaves: fc.constantFrom('half-closes', 'half-closes', 'half-closes', 'resets'),
})

const changed = (bytes: string, [where, put, drop]: readonly [number, string, number]): string => {
  const at = Math.floor((where / 10_000) * bytes.length)
  return bytes.slice(0, at) + put + bytes.slice(at + drop)
}
