import type { IncomingMessage } from 'node:http'
import { Fault } from '../errors.ts'
import type { RequestContext } from './context.ts'
import type { ServerLimits } from './limits.ts'

/** True when the request has a body that has not been read completely. */
export const unread = ({ headers, complete }: IncomingMessage): boolean =>
  !complete && (headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0')

/**
 * Reads the body, up to `limit` bytes. Throws TooLarge as soon as it is known to be larger, UnsupportedMediaType for a
 * compressed body (a few bytes could expand to gigabytes), and Interrupted when the caller disconnects.
 */
export function receive({ request, response, expects }: RequestContext, limit: number): Promise<Buffer> {
  const { headers } = request
  const encoding = headers['content-encoding']?.toLowerCase() ?? 'identity'
  if (encoding !== 'identity') {
    return Promise.reject(new Fault('UnsupportedMediaType', 'Send the body without Content-Encoding'))
  }
  const tooLarge = (): Fault => new Fault('TooLarge', `The request body may have at most ${limit} bytes`)
  if (Number(headers['content-length'] ?? 0) > limit) return Promise.reject(tooLarge())
  if (!unread(request)) return Promise.resolve(Buffer.alloc(0))
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const settle = (act: () => void): void => {
      request.off('data', take).off('end', ended).off('close', cut)
      act()
    }
    const take = (chunk: Buffer): void => {
      size += chunk.length
      if (size > limit) settle(() => reject(tooLarge()))
      else chunks.push(chunk)
    }
    const ended = (): void => settle(() => resolve(Buffer.concat(chunks, size)))
    const cut = (): void => settle(() => reject(new Fault('Interrupted', 'The caller went away')))
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
