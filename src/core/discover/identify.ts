import type { Socket } from 'node:net'
import { connectTcp } from '../net/connect.ts'
import { said } from '../net/text.ts'
import type { OpenPort } from './ports.ts'
import { type Speaker, speakers } from './speakers.ts'

/** Who listens at a port, as far as it told. */
export type Identified = OpenPort & {
  /** The protocol: a row of `speakers`, or `unknown`. */
  readonly what: string
  /** Under TLS; `trusted` by this machine for the address, which a certificate seldom names. */
  readonly tls?: { readonly trusted: boolean } | undefined
  /** The first line of what it said, or an HTTP `Server`; fit to be shown. */
  readonly product?: string | undefined
  /** It wants a sign-in before it says anything else. */
  readonly guarded?: boolean | undefined
}

/** Milliseconds: what listens here answers at once, or is not asked any further. */
const bannerMs = 300
const answerMs = 700
const mostHeard = 4_096

/** Says who listens at a port of this machine. Signs in nowhere. Rejects only when the signal aborts. */
export async function identify(at: OpenPort, signal: AbortSignal): Promise<Identified> {
  const banner = await ask(at, undefined, signal)
  if (banner && banner.length > 0) {
    const first = speakers.find((speaker) => speaker.greeting === undefined && speaker.is(banner, at.port))
    return { ...at, what: first?.what ?? 'unknown', product: shown(banner) }
  }
  const silent = speakers.filter((speaker) => speaker.greeting !== undefined)
  const likely = (speaker: Speaker): number => (speaker.usual.includes(at.port) ? 0 : 1)
  for (const speaker of silent.toSorted((a, b) => likely(a) - likely(b))) {
    const heard = await ask(at, speaker.greeting, signal)
    if (!heard || heard.length === 0 || !speaker.is(heard, at.port)) continue
    const product = speaker.what === 'http' ? serverOf(heard) : undefined
    return { ...at, what: speaker.what, product, guarded: heard.toString('latin1').startsWith('-NOAUTH') }
  }
  return (await overTls(at, signal)) ?? { ...at, what: 'unknown' }
}

/** What is heard after a greeting, or unasked; undefined when nothing listens any more. */
async function ask(at: OpenPort, greeting: Buffer | undefined, signal: AbortSignal): Promise<Buffer | undefined> {
  const patience = AbortSignal.any([signal, AbortSignal.timeout(answerMs + bannerMs)])
  try {
    const socket = await connectTcp(at.host, at.port, patience)
    if (greeting) socket.write(greeting)
    return await heardFrom(socket, greeting ? answerMs : bannerMs)
  } catch {
    signal.throwIfAborted()
    return undefined
  }
}

/** The first bytes that come within the time. Ends the socket. */
function heardFrom(socket: Socket, ms: number): Promise<Buffer> {
  return new Promise((resolve) => {
    let heard = Buffer.alloc(0)
    const done = (): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(heard)
    }
    const timer = setTimeout(done, ms)
    socket.once('close', done)
    socket.on('data', (part: Buffer) => {
      heard = Buffer.concat([heard, part.subarray(0, mostHeard - heard.length)])
      // The head of an HTTP answer is wanted whole; of anything else the first words are enough.
      const http = heard.toString('latin1', 0, 5) === 'HTTP/'
      if (heard.length >= mostHeard || !http || heard.includes('\r\n\r\n')) done()
    })
  })
}

async function overTls(at: OpenPort, signal: AbortSignal): Promise<Identified | undefined> {
  const { connect } = process.getBuiltinModule('node:tls')
  const patience = AbortSignal.any([signal, AbortSignal.timeout(2 * answerMs)])
  let plain: Socket | undefined
  try {
    plain = await connectTcp(at.host, at.port, patience)
    // Looked at and never trusted: nothing that matters is said through it.
    const socket = connect({ socket: plain, host: at.host, rejectUnauthorized: false })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    socket
      .once('secureConnect', resolve)
      .once('error', reject)
      .once('close', () => reject(new Error('closed')))
    await promise
    const tls = { trusted: socket.authorized }
    socket.on('error', () => {})
    socket.write('HEAD / HTTP/1.0\r\n\r\n')
    const heard = await heardFrom(socket, answerMs)
    const http = heard.toString('latin1').startsWith('HTTP/')
    return { ...at, what: http ? 'http' : 'unknown', tls, product: http ? serverOf(heard) : shown(heard) }
  } catch {
    signal.throwIfAborted()
    return undefined
  } finally {
    plain?.destroy()
  }
}

const shown = (heard: Buffer): string | undefined => {
  const first = heard.toString('latin1').split(/\r?\n/, 1)[0] ?? ''
  return /^[\x20-\x7e]+$/.test(first) ? said(first, 60) : undefined
}

const serverOf = (heard: Buffer): string | undefined => {
  const [, server] = /\r\nServer: *([\x20-\x7e]{1,60})/i.exec(heard.toString('latin1')) ?? []
  return server === undefined ? undefined : said(server.trim(), 60)
}
