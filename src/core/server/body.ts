import type { IncomingMessage } from 'node:http'
import { Fault } from '../errors.ts'
import type { RequestContext } from './context.ts'
import type { ServerLimits } from './limits.ts'

/** True when a body was announced that nobody has read to its end. */
export const unread = ({ headers, complete }: IncomingMessage): boolean =>
  !complete && (headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0')

/**
 * Reads the body, at most `limit` bytes of it. Throws TooLarge as soon as it is known to be larger,
 * UnsupportedMediaType for a compressed one (a few bytes could stand for gigabytes), and Interrupted
 * when the caller goes away.
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
 * Calls `done` when the rest of an unread body has come, or enough of it, or enough time has passed.
 * A connection closed at once is reset, and the caller would lose the answer that says why.
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
