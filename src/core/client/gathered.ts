/** Bytes: no health answer comes near it. */
export const longestAnswer = 8 * 1024 * 1024
const firstRoom = 16 * 1024

/**
 * An answer as it arrives. The pieces are copied together: a hostile server may send one byte at a time, and kept
 * apart each would cost a hundred.
 */
export class Gathered {
  #room: Buffer
  #length = 0
  #tooLong: boolean

  /** The length that the server declared; NaN for none. */
  constructor(declared: number) {
    this.#tooLong = declared > longestAnswer
    this.#room = Buffer.allocUnsafe(declared > 0 && declared <= longestAnswer ? declared : firstRoom)
  }

  get length(): number {
    return this.#length
  }

  /** True when there is more than is read; nothing is added from then on. */
  get tooLong(): boolean {
    return this.#tooLong
  }

  add(piece: Buffer): void {
    const length = this.#length + piece.length
    if (this.#tooLong || length > longestAnswer) {
      this.#tooLong = true
      return
    }
    if (length > this.#room.length) {
      const wider = Buffer.allocUnsafe(Math.min(longestAnswer, Math.max(length, this.#room.length * 2)))
      this.#room.copy(wider, 0, 0, this.#length)
      this.#room = wider
    }
    piece.copy(this.#room, this.#length)
    this.#length = length
  }

  bytes(): Buffer {
    return this.#room.subarray(0, this.#length)
  }
}
