import type { Transform } from 'node:stream'
import { ProbeError } from '../../probe-error.ts'
import { sanitize } from '../text.ts'

/** Maximum number of content codings of one answer. Servers use one. */
const maxCodings = 3

/** A body, or the beginning of one. */
export type Body = {
  readonly bytes: Buffer
  /** True when the body is longer than what was read. */
  readonly more: boolean
}

type Decoder = (bytes: Buffer, incomplete: boolean) => Transform

// Loaded on first use: most answers are not compressed.
const zlib = () => process.getBuiltinModule('node:zlib')
/** Decodes as much as there is of a body that was cut on purpose. */
const flushed = (incomplete: boolean) => (incomplete ? { finishFlush: zlib().constants.Z_SYNC_FLUSH } : {})
const gunzip: Decoder = (_, incomplete) => zlib().createGunzip(flushed(incomplete))

/** By name (RFC 9110, 8.4.1; RFC 7932; RFC 8878). */
const decoders: Readonly<Record<string, Decoder>> = {
  gzip: gunzip,
  'x-gzip': gunzip,
  // Some servers leave out the header of zlib, whose first byte has 8 in its lower half.
  deflate: (bytes, incomplete) =>
    ((bytes[0] ?? 0) & 0x0f) === 8
      ? zlib().createInflate(flushed(incomplete))
      : zlib().createInflateRaw(flushed(incomplete)),
  br: (_, incomplete) =>
    zlib().createBrotliDecompress(incomplete ? { finishFlush: zlib().constants.BROTLI_OPERATION_FLUSH } : {}),
  zstd: (_, incomplete) =>
    zlib().createZstdDecompress(incomplete ? { finishFlush: zlib().constants.ZSTD_e_flush } : {}),
}

/** The content codings of an answer, in the order in which they were applied. */
const codingsIn = (header = ''): readonly string[] =>
  header
    .slice(0, 256)
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity')

/** Whether svc decodes a body with this Content-Encoding header. Others are left as they are, as browsers do. */
const isDecoded = (codings: readonly string[]): boolean =>
  codings.length > 0 && codings.length <= maxCodings && codings.every((name) => Object.hasOwn(decoders, name))

/** The Content-Encoding that svc left in a body, sanitized. Undefined when there is none. */
export const undecodedCoding = (header: string | undefined): string | undefined =>
  header === undefined || codingsIn(header).length === 0 || isDecoded(codingsIn(header))
    ? undefined
    : sanitize(header, 32)

/**
 * Removes the content codings of a body, up to `max` bytes of each. Throws ProbeError `protocol` when the data is not
 * what the header says, or ends too early.
 */
export async function decodeBody(
  body: Body,
  { coding, max, address }: { readonly coding: string | undefined; readonly max: number; readonly address: string },
): Promise<Body> {
  const codings = codingsIn(coding)
  if (!isDecoded(codings) || body.bytes.length === 0) return body
  let decoded = body
  for (const name of codings.toReversed()) {
    const decoder = decoders[name] as Decoder
    try {
      decoded = await expand(decoded, decoder(decoded.bytes, decoded.more), max)
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'unknown'
      const what = code === 'Z_BUF_ERROR' || code === 'ERR_BUFFER_OUT_OF_RANGE' ? 'incomplete' : 'damaged'
      throw new ProbeError('protocol', `${address} answered in the content coding ${name}, but the data is ${what}`, [
        code,
      ])
    }
  }
  return decoded
}

async function expand({ bytes, more }: Body, decoder: Transform, max: number): Promise<Body> {
  const chunks: Buffer[] = []
  let length = 0
  decoder.end(bytes)
  // Leaving the loop destroys the decoder: a small answer may expand to any size.
  for await (const chunk of decoder as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    length += chunk.length
    if (length > max) break
  }
  return { bytes: Buffer.concat(chunks).subarray(0, max), more: more || length > max }
}
