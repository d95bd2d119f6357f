/** A body that is made once, and sent to all callers from these buffers. */
export type StoredBody = { readonly plain: Buffer; readonly gzipped: Buffer }

/**
 * A text in parts, of which answers share some: each is encoded once, and no answer copies it. A text of half a megabyte would
 * otherwise become two more of its size on the heap, for each caller.
 */
export class SharedText {
  readonly parts: readonly Buffer[]

  constructor(parts: readonly Buffer[]) {
    this.parts = parts
  }

  /** In bytes. */
  get length(): number {
    return this.parts.reduce((sum, { length }) => sum + length, 0)
  }

  toString(): string {
    return this.parts.join('')
  }
}

/** An answer before it is written to a connection. */
export type HttpAnswer = {
  readonly status: number
  /** Absent: no body. */
  readonly contentType?: string | undefined
  readonly body?: string | SharedText | undefined
  /** In place of `body`: what is stored for all callers, as it is and gzipped. */
  readonly stored?: StoredBody | undefined
  /** Additional headers as a flat list: name, value, name, value. */
  readonly headers?: readonly string[] | undefined
  /** Whether pages of any site may show it, as an image. All other answers belong to pages of this origin. */
  readonly isForAnyPage?: boolean | undefined
  /** For pages. All other answers get a policy that forbids everything. */
  readonly contentSecurityPolicy?: string | undefined
}
