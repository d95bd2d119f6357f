import type { IncomingMessage } from 'node:http'
import { createGunzip, createInflate, createInflateRaw, type Gunzip, type Inflate, type InflateRaw } from 'node:zlib'
import { Fault } from '../base/errors.ts'
import type { RequestContext } from './context.ts'
import type { ServerLimits } from './limits.ts'

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'

/** True when the request has a body that has not arrived completely. */
export const unread = (request: IncomingMessage): boolean => !request.complete && hasBody(request)

type Decoder = Gunzip | Inflate | InflateRaw

/** The compressions of bodies. The first byte of a body decides between the two forms of deflate. */
const decoders: ReadonlyMap<string, (first: number) => Decoder> = new Map<string, (first: number) => Decoder>([
  ['gzip', () => createGunzip()],
  ['x-gzip', () => createGunzip()],
  // Some clients, .NET's DeflateStream among them, leave out the zlib header that the name promises.
  ['deflate', (first) => ((first & 0x0f) === 0x08 ? createInflate() : createInflateRaw())],
])

const unsupportedEncoding = (): Fault =>
  new Fault('UnsupportedMediaType', 'The body must be compressed once with gzip or deflate, or not at all', {
    headers: { 'Accept-Encoding': 'gzip, deflate' },
  })

/**
 * Reads the body and expands it, up to `limit` bytes. Throws TooLarge as soon as it is known to be larger, before or
 * after expansion; UnsupportedMediaType for any other compression; Unreadable for damaged data; and Interrupted when
 * the caller disconnects.
 */
export function receive({ request, response, expects }: RequestContext, limit: number): Promise<Buffer> {
  const { headers } = request
  const encoding = headers['content-encoding']?.toLowerCase() ?? 'identity'
  const decoderFor = decoders.get(encoding)
  if (decoderFor === undefined && encoding !== 'identity') return Promise.reject(unsupportedEncoding())
  const tooLarge = (): Fault => new Fault('TooLarge', `The request body may have at most ${limit} bytes`)
  if (Number(headers['content-length'] ?? 0) > limit) return Promise.reject(tooLarge())
  // The body of a request that waited for its turn may have arrived already, and still be there to read.
  if (!hasBody(request) || request.readableEnded) return Promise.resolve(Buffer.alloc(0))
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let decoder: Decoder | undefined
    let received = 0
    let size = 0
    const settle = (act: () => void): void => {
      request.off('data', take).off('end', ended).off('close', cut)
      // What the decoder still holds could expand to gigabytes.
      decoder?.destroy()
      act()
    }
    const keep = (chunk: Buffer): void => {
      size += chunk.length
      if (size > limit) settle(() => reject(tooLarge()))
      else chunks.push(chunk)
    }
    const finished = (): void => settle(() => resolve(Buffer.concat(chunks, size)))
    const take = (chunk: Buffer): void => {
      received += chunk.length
      if (received > limit) settle(() => reject(tooLarge()))
      else if (decoderFor === undefined) keep(chunk)
      else {
        decoder ??= connected(decoderFor(chunk[0] ?? 0))
        if (decoder.write(chunk)) return
        request.pause()
        decoder.once('drain', () => request.resume())
      }
    }
    const connected = (made: Decoder): Decoder =>
      made
        .on('data', keep)
        .once('end', finished)
        // The decoder's message names no byte of the body, and helps nobody.
        .once('error', () =>
          settle(() => reject(new Fault('Unreadable', `The request body is not valid ${encoding} data`))),
        )
    const ended = (): void => {
      request.off('close', cut)
      if (decoder === undefined) finished()
      else decoder.end()
    }
    const cut = (): void => settle(() => reject(new Fault('Interrupted', 'The client disconnected')))
    request.on('data', take).once('end', ended).once('close', cut)
    if (expects) response.writeContinue()
  })
}

/**
 * Discards the rest of an unread body. Calls `done` when it is complete, or after enough bytes or time. Closing the
 * connection at once would reset it, and the caller would lose the answer that explains the error.
 */
export function swallow(request: IncomingMessage, limits: ServerLimits, done: () => void): void {
  let size = 0
  const take = (chunk: Buffer): void => {
    size += chunk.length
    if (size > limits.lingerBytes) finish()
  }
  const finish = (): void => {
    clearTimeout(timer)
    request.off('data', take).off('end', finish).off('close', finish)
    request.pause()
    done()
  }
  const timer = setTimeout(finish, limits.lingerMs)
  request.on('data', take).once('end', finish).once('close', finish)
  request.resume()
}
