import { bareHost } from '../../base/loopback.ts'
import { connectTcp, lookupWith, resolveHost } from '../../base/net/connect.ts'
import { queryMessage } from '../../base/net/dns-query.ts'
import { sendBounded } from '../../base/net/http/get.ts'

/** Milliseconds that a witness has for its answer. */
const patienceMs = 3_000

/**
 * Whether a witness answers: accepts a connection (`tcp://host:port`), answers a question (`dns://server/name`) or a
 * request (`https://…`), whatever the answer is. Never rejects.
 */
export async function answers(witness: string, stop: AbortSignal): Promise<boolean> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(patienceMs)])
  const url = new URL(witness)
  try {
    if (url.protocol === 'tcp:') await connects(url, signal)
    else if (url.protocol === 'dns:') await names(url, signal)
    else await requests(url, signal)
    return true
  } catch {
    return false
  }
}

const addressOf = async ({ hostname }: URL, signal: AbortSignal): Promise<string> => {
  const [address] = await resolveHost(bareHost(hostname), signal)
  if (address === undefined) throw new Error('no address')
  return address
}

async function connects(url: URL, signal: AbortSignal): Promise<void> {
  const socket = await connectTcp(await addressOf(url, signal), Number(url.port), signal)
  socket.destroy()
}

async function names(url: URL, signal: AbortSignal): Promise<void> {
  const port = url.port === '' ? 53 : Number(url.port)
  await queryMessage({ ip: await addressOf(url, signal), port, name: url.pathname.slice(1), type: 'A', signal })
}

async function requests(url: URL, signal: AbortSignal): Promise<void> {
  await sendBounded(url, {
    method: 'HEAD',
    headers: { Connection: 'close' },
    lookup: lookupWith((host) => resolveHost(host, signal)),
    signal,
    // Nothing secret is sent, and nothing of the answer is used.
    rejectUnauthorized: false,
    maxBytes: 1_024,
    tooLarge: () => new Error('the answer to HEAD has a body'),
  })
}
