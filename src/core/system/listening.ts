import { connectTcp } from '../net/connect.ts'
import { sanitize } from '../net/text.ts'

export type UsualPort = { readonly port: number; readonly what: string }
export type Listening = UsualPort & { readonly banner?: string | undefined }

const loopback = '127.0.0.1'
/** Milliseconds. This machine accepts at once or not at all; a firewall that drops packets must not delay the run. */
const connectMs = 500
const bannerMs = 300
const bannerBytes = 512
const bannerShown = 80
/** Maximum number of ports: a file with thousands must not cause a port scan. */
const maxPorts = 64

/**
 * Which of the ports are open on 127.0.0.1. It connects, reads what a protocol sends first within 300 ms (`hearMs`; 0
 * does not read), sends nothing and signs in nowhere. Closed ports are left out. Rejects only when the signal aborts.
 */
export async function listeningPorts(
  ports: readonly UsualPort[],
  signal: AbortSignal,
  hearMs: number = bannerMs,
): Promise<Listening[]> {
  const unique = [...new Map(ports.map((one) => [one.port, one])).values()].slice(0, maxPorts)
  const open = await Promise.all(unique.map((one) => probe(one, signal, hearMs)))
  signal.throwIfAborted()
  return open.filter((one) => one !== undefined)
}

async function probe({ port, what }: UsualPort, signal: AbortSignal, hearMs: number): Promise<Listening | undefined> {
  const patience = new AbortController()
  const stop = (): void => patience.abort(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  const timer = setTimeout(stop, connectMs)
  try {
    const socket = await connectTcp(loopback, port, patience.signal)
    clearTimeout(timer)
    try {
      const banner = hearMs > 0 ? await hear(socket, hearMs) : undefined
      return { port, what, banner }
    } finally {
      socket.destroy()
    }
  } catch {
    return undefined
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}

/** The first line that the service sends unprompted, if it is text; a binary greeting is not shown. */
function hear(socket: Awaited<ReturnType<typeof connectTcp>>, ms: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    let received = Buffer.alloc(0)
    const done = (): void => {
      clearTimeout(timer)
      resolve(bannerOf(received))
    }
    const timer = setTimeout(done, ms)
    socket.once('close', done)
    socket.on('data', (part: Buffer) => {
      received = Buffer.concat([received, part.subarray(0, bannerBytes - received.length)])
      if (received.includes(0x0a) || received.length >= bannerBytes) done()
    })
  })
}

export function bannerOf(received: Buffer): string | undefined {
  const line = received.toString('latin1').split(/\r?\n/, 1)[0] ?? ''
  if (!/^[\x20-\x7e]+$/.test(line)) return undefined
  return sanitize(line, bannerShown) || undefined
}
