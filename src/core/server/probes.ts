import { Fault } from '../errors.ts'
import type { Answer } from './answer.ts'
import { type Exchange, orCancelled } from './exchange.ts'
import type { Site } from './site.ts'

const plain = (text: string): Answer => ({ status: 200, contentType: 'text/plain; charset=utf-8', body: text })

/** /livez: the process answers. Runs no monitor and asks no store, so that a restart is never ordered for them. */
export const live = async (): Promise<Answer> => plain('alive\n')

/**
 * /readyz: the store answers in time and the server is not stopping; else throws Unavailable. Any Host
 * may ask, so what is wrong is told to this machine alone, and only under one of its names.
 */
export async function ready(site: Site, exchange: Exchange): Promise<Answer> {
  const late = new Fault('Unavailable', `the store does not answer within ${site.limits.readyMs} ms`)
  const timer = setTimeout(() => exchange.cancel(late), site.limits.readyMs)
  try {
    await orCancelled(exchange, site.runtime.ready(exchange.signal))
    return plain('ready\n')
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const reason = mayKnow(site, exchange) ? error.message : 'the store does not answer'
    throw new Fault('Unavailable', `Not ready: ${reason}`, { retryAfter: 5 })
  } finally {
    clearTimeout(timer)
  }
}

function mayKnow(site: Site, { caller, request }: Exchange): boolean {
  if (!caller.loopback) return false
  try {
    site.checkHost(request.headers.host ?? '', request.socket.localAddress)
    return true
  } catch {
    return false
  }
}
