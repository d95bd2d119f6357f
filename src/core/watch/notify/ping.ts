import type { ConfiguredFiles } from '../../base/files/index.ts'
import { noRedaction } from '../../base/net/text.ts'
import type { Secret } from '../../base/settings/index.ts'
import type { Delivery } from './receiver.ts'
import { deliveryOf, failureOf, redactorOf, request, secretUrl } from './receivers/post.ts'

/**
 * Requests the URL of a dead man's switch, which alerts when requests stop. Reads the URL each time, so that a rotated
 * one takes effect. Messages show its scheme and host. Never rejects.
 */
export async function ping(
  url: Secret,
  { version, files, now }: { readonly version: string; readonly files: ConfiguredFiles; readonly now: () => number },
  signal: AbortSignal,
): Promise<Delivery> {
  try {
    const target = secretUrl((await url.reveal(files)).trim(), url.origin)
    const headers = { Accept: '*/*', 'User-Agent': `svc/${version}` }
    const redact = redactorOf(target, [])
    const place = { url: target, headers, isSecret: true, trust: { ca: undefined, pinned: [] }, redact }
    const reply = await request(place, { method: 'GET' }, signal, now)
    const delivery = deliveryOf(reply, target, now, 'refuses the ping')
    return delivery.what === 'accepted' ? delivery : { ...delivery, message: `ping: ${delivery.message}` }
  } catch (error) {
    const origin = `the URL of ${url.origin}`
    return failureOf(error, { origin, isSent: false, stop: signal, signal, ms: 0, redact: noRedaction })
  }
}
