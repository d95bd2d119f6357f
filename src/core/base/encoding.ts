const utf8 = 'utf-8'
/** Byte order marks, and the encodings that they stand for. */
const marks = [
  ['efbbbf', utf8],
  ['fffe', 'utf-16le'],
  ['feff', 'utf-16be'],
] as const
/** Bytes at the beginning of a page in which browsers look for its `<meta charset>`. */
const htmlHead = 1_024

type Options = {
  /** The value of the Content-Type header. */
  readonly contentType?: string | undefined
  /** The encoding that the text itself declares: an XML declaration. Default: that of an HTML page. */
  readonly declared?: string | undefined
}

/**
 * The encoding of a text: by its byte order mark, else by the header, else by its own declaration, else UTF-8.
 *
 * @example
 * ```ts
 * encodingOf(Buffer.from('a'), { contentType: 'text/html; charset=ISO-8859-1' }) // 'ISO-8859-1'
 * ```
 */
export function encodingOf(bytes: Uint8Array, { contentType = '', declared }: Options = {}): string {
  const begin = Buffer.from(bytes.subarray(0, 3)).toString('hex')
  const [, marked] = marks.find(([mark]) => begin.startsWith(mark)) ?? []
  const inHeader = /;\s*charset="?([\w.:-]{1,40})/i.exec(contentType.slice(0, 200))?.[1]
  return marked ?? inHeader ?? declared ?? declaredInHtml(bytes, contentType) ?? utf8
}

/** The encoding that an HTML page names in its head. Undefined for everything else. */
function declaredInHtml(bytes: Uint8Array, contentType: string): string | undefined {
  if (contentType !== '' && !/\bhtml\b/i.test(contentType.slice(0, 200))) return undefined
  const head = Buffer.from(bytes.subarray(0, htmlHead)).toString('latin1')
  const name = /<meta\s[^>]{0,200}?charset\s*=\s*["']?([\w.:-]{1,40})/i.exec(head)?.[1]
  // Such a declaration can only be read in an encoding that contains ASCII, so it means UTF-8 (WHATWG HTML, 13.2.3.2).
  return name !== undefined && /^utf-?16/i.test(name) ? utf8 : name
}

/**
 * Text from a peer, without its byte order mark. Bytes that are not valid become U+FFFD, and an unknown encoding counts
 * as UTF-8. Never throws.
 *
 * @example
 * ```ts
 * decodeText(Buffer.from([0xff, 0xfe, 0x61, 0x00])) // 'a'
 * ```
 */
export function decodeText(bytes: Uint8Array, options: Options = {}): string {
  const encoding = encodingOf(bytes, options)
  try {
    return new TextDecoder(encoding).decode(bytes)
  } catch {
    return new TextDecoder().decode(bytes)
  }
}

/**
 * The same, but undefined for an unknown encoding and for bytes that are not valid in it.
 *
 * @example
 * ```ts
 * decodeStrictly(Buffer.from([0xc3])) // undefined
 * ```
 */
export function decodeStrictly(bytes: Uint8Array, options: Options = {}): string | undefined {
  try {
    return new TextDecoder(encodingOf(bytes, options), { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
