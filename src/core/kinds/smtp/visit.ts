import type { Socket } from 'node:net'
import { type CheckContext, includes } from '../../engine/index.ts'
import { isLoopback } from '../../loopback.ts'
import { readCaFile } from '../../net/ca-file.ts'
import type { Chain } from '../../net/chain.ts'
import { connectTcp } from '../../net/connect.ts'
import type { PeerAddress } from '../../net/peer-address.ts'
import { type Hide, hiding } from '../../net/text.ts'
import { connectTls } from '../../net/tls-connect.ts'
import { whyDistrusted } from '../../net/trust.ts'
import { ProbeError } from '../../probe-error.ts'
import { type Acceptance, askRecipient, credentialsOf, methodsOf, signIn } from './look.ts'
import type { Reply } from './reply.ts'
import { isImplicit, type SmtpSettings } from './settings.ts'
import { type Abilities, Talk } from './talk.ts'

export type Seen =
  | {
      readonly see: 'banner'
      readonly address: string
      readonly code: number
      readonly told: string
      readonly ms: number
    }
  | { readonly see: 'hello'; readonly address: string; readonly abilities: readonly string[] }
  | { readonly see: 'TLS'; readonly chain: Chain; readonly distrust: string | undefined; readonly days: boolean }
  | { readonly see: 'no TLS'; readonly address: string; readonly loopback: boolean }
  | {
      readonly see: 'authentication'
      readonly address: string
      readonly methods: readonly string[]
      /** Offered before TLS, where TLS is to be had. */
      readonly inClear: boolean
    }
  | { readonly see: 'signed in'; readonly address: string }
  /** Undefined: the server names no limit. */
  | { readonly see: 'size'; readonly address: string; readonly size: number | undefined }
  | ({ readonly see: 'recipient'; readonly address: string } & Acceptance)

/** From the banner to the goodbye, with one address. */
export async function* visitSmtp(at: PeerAddress, given: SmtpSettings, context: CheckContext): AsyncGenerator<Seen> {
  const sockets = new Set<Socket>()
  try {
    yield* conversation(at, given, context, (socket) => {
      sockets.add(socket)
      return socket
    })
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

type Keep = <S extends Socket>(socket: S) => S

async function* conversation(
  at: PeerAddress,
  given: SmtpSettings,
  context: CheckContext,
  keep: Keep,
): AsyncGenerator<Seen> {
  const { address } = at
  const standard = includes(context.mode, 'Standard')
  const signing = standard && given.username !== undefined
  const password = signing ? await given.password?.reveal() : undefined
  const hide = hiding(password === undefined ? [] : credentialsOf(given.username ?? '', password))
  const ca = await readCaFile(given.caFile)
  const host = given.servername ?? given.host.replace(/^\[(.*)\]$/, '$1')
  const start = context.now()
  const reach = async (): Promise<Socket> => keep(await connectTcp(at.ip, at.port, at.signal))
  const shake = (open: () => Promise<Socket>) => connectTls(at, { host, ca, verify: true, date: context.date, open })
  const secured = ({ chain }: { readonly chain: Chain }): Seen & { see: 'TLS' } => ({
    see: 'TLS',
    chain,
    distrust: whyDistrusted(chain),
    days: standard,
  })

  let encrypted = isImplicit(given)
  let socket: Socket
  if (encrypted) {
    at.step('TLS')
    const link = await shake(reach)
    socket = keep(link.socket)
    const seen = secured(link)
    yield seen
    if (seen.distrust !== undefined) return
    at.step('banner')
  } else {
    socket = await reach()
  }
  const hello = given.hello ?? literal(socket)
  let talk = new Talk(socket, address, hide)
  const banner = await talk.greeting()
  yield { see: 'banner', address, code: banner.code, told: talk.shown(banner), ms: context.now() - start }
  if (banner.code !== 220) return
  if (!standard) return await talk.quit()

  at.step('hello')
  let abilities = await talk.hello(hello)
  const clear = abilities
  if (!encrypted && given.tls !== 'off' && (given.tls === 'starttls' || abilities.has('STARTTLS'))) {
    at.step('TLS')
    if (!abilities.has('STARTTLS')) throw new ProbeError('tls', `${address} does not offer STARTTLS`)
    let first: Socket | undefined = await talk.startTls()
    const link = await shake(async () => {
      const prepared = first
      first = undefined
      // The chain is looked at again with other roots: the way up to TLS begins anew.
      return prepared ?? (await anew(await reach(), address, hide, hello))
    })
    const seen = secured(link)
    keep(link.socket)
    yield seen
    if (seen.distrust !== undefined) return
    encrypted = true
    talk = new Talk(link.socket, address, hide)
    at.step('hello')
    abilities = await talk.hello(hello)
  } else if (!encrypted && given.tls !== 'off') {
    yield { see: 'no TLS', address, loopback: isLoopback(at.ip) }
  }
  yield { see: 'hello', address, abilities: [...abilities.keys()].slice(0, 50) }
  yield {
    see: 'authentication',
    address,
    methods: abilities.get('AUTH') ?? [],
    inClear: clear !== abilities && methodsOf(clear).length > 0,
  }
  if (given.size !== undefined) yield { see: 'size', address, size: sizeOf(abilities) }
  if (given.username !== undefined && password !== undefined) {
    at.step('sign-in')
    if (!encrypted) throw new ProbeError('data', `the password is not sent to ${address}: it offers no TLS`)
    await signIn(talk, abilities, given.username, password)
    yield { see: 'signed in', address }
  }
  if (given.recipient !== undefined && includes(context.mode, 'Advanced')) {
    at.step('recipient')
    yield { see: 'recipient', address, ...(await askRecipient(talk, given.sender ?? '', given.recipient)) }
  }
  await talk.quit()
}

async function anew(socket: Socket, address: string, hide: Hide, hello: string): Promise<Socket> {
  const talk = new Talk(socket, address, hide)
  const banner: Reply = await talk.greeting()
  if (banner.code !== 220) throw new ProbeError('refused', `${address} said ${talk.shown(banner)}`)
  await talk.hello(hello)
  return await talk.startTls()
}

/** Who has no name calls itself by its address (RFC 5321, 4.1.3). */
function literal({ localAddress = '127.0.0.1' }: Socket): string {
  return localAddress.includes(':') ? `[IPv6:${localAddress}]` : `[${localAddress}]`
}

function sizeOf(abilities: Abilities): number | undefined {
  const [written] = abilities.get('SIZE') ?? []
  // `SIZE` and `SIZE 0`: there is no fixed limit (RFC 1870).
  return written !== undefined && /^\d{1,15}$/.test(written) && Number(written) > 0 ? Number(written) : undefined
}
