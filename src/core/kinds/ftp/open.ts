import type { Socket } from 'node:net'
import type { CheckContext } from '../../engine/index.ts'
import { readCaFile } from '../../net/ca-file.ts'
import type { Chain } from '../../net/chain.ts'
import { connectTcp } from '../../net/connect.ts'
import type { PeerAddress } from '../../net/peer-address.ts'
import type { Hide } from '../../net/text.ts'
import { connectTls } from '../../net/tls-connect.ts'
import { whyDistrusted } from '../../net/trust.ts'
import { ProbeError } from '../../probe-error.ts'
import { Control } from './control.ts'
import { type Keep, type Link, type LinkTls, wait } from './link.ts'
import type { Reply } from './reply.ts'
import type { FtpSettings } from './settings.ts'

export type Banner = {
  readonly see: 'banner'
  readonly address: string
  readonly code: number
  /** What it said, quoted. */
  readonly said: string
  readonly ms: number
}
export type OpenSeen =
  | Banner
  | {
      readonly see: 'TLS'
      readonly address: string
      readonly chain: Chain
      /** Why nothing may be sent to it. */
      readonly distrust: string | undefined
    }

/** Milliseconds kept back from the deadline, so that what did not answer can be told. */
const reserveMs = 150
/** Milliseconds for the banner: all the time that there is. */
const firstWait = (context: CheckContext): number => Math.max(1, context.msLeft() - reserveMs, context.msLeft() / 2)

/**
 * Connects, hears the banner and agrees on TLS. Ends without a link where the banner or the certificate
 * forbids to go on. Every socket goes through `keep`: the caller destroys them.
 */
export async function* openFtp(
  target: PeerAddress,
  given: FtpSettings,
  context: CheckContext,
  hide: Hide,
  keep: Keep,
): AsyncGenerator<OpenSeen, Link | undefined> {
  const { address } = target
  const start = context.now()
  const dataHosts = given.dataHosts ?? []
  const connect = async (): Promise<Socket> => keep(await connectTcp(target.ip, target.port, target.signal))
  const greeted = async (socket: Socket): Promise<{ readonly control: Control; readonly banner: Banner }> => {
    const control = new Control(socket, address, hide)
    const reply = await control.first(firstWait(context))
    return { control, banner: bannerOf(control, reply, context.now() - start) }
  }
  const link = (control: Control, tls?: LinkTls): Link => ({ control, target, context, hide, keep, dataHosts, tls })
  if (given.tls === 'implicit') {
    target.step('TLS')
    const { tls, socket, seen } = await secure(target, given, context, keep, connect)
    yield seen
    if (seen.distrust !== undefined) return undefined
    target.step('banner')
    const { control, banner } = await greeted(socket)
    yield banner
    return banner.code === 220 ? link(control, tls) : undefined
  }
  const { control, banner } = await greeted(await connect())
  yield banner
  if (banner.code !== 220) return undefined
  if (given.tls === 'off') return link(control)
  target.step('TLS')
  await agree(control, wait(context))
  let first: Socket | undefined = control.detach()
  const { tls, socket, seen } = await secure(target, given, context, keep, async () => {
    const prepared = first
    first = undefined
    if (prepared) return prepared
    // The chain is looked at again with other roots: the way up to TLS begins anew.
    const again = await greeted(await connect())
    if (again.banner.code !== 220) throw new ProbeError('refused', `${address} said ${again.banner.said}`)
    await agree(again.control, wait(context))
    return again.control.detach()
  })
  yield seen
  return seen.distrust === undefined ? link(new Control(socket, address, hide), tls) : undefined
}

const bannerOf = (control: Control, reply: Reply, ms: number): Banner => ({
  see: 'banner',
  address: control.address,
  code: reply.code,
  said: control.shown(reply),
  ms,
})

/** Shakes hands on what `open` opens. */
async function secure(
  target: PeerAddress,
  given: FtpSettings,
  context: CheckContext,
  keep: Keep,
  open: () => Promise<Socket>,
) {
  const host = given.servername ?? given.host.replace(/^\[(.*)\]$/, '$1')
  const ca = await readCaFile(given.caFile)
  const made = await connectTls(target, { host, ca, verify: true, date: context.date, open })
  const socket = keep(made.socket)
  let session: Buffer | undefined
  // TLS 1.3 sends what a data connection resumes with after the handshake, and may renew it.
  socket.on('session', (ticket) => {
    session = ticket
  })
  const tls: LinkTls = { host, chain: made.chain, session: () => session ?? socket.getSession() }
  const { address } = target
  const seen = { see: 'TLS', address, chain: made.chain, distrust: whyDistrusted(made.chain) } as const
  return { tls, socket, seen }
}

async function agree(control: Control, ms: number): Promise<void> {
  const reply = await control.ask('AUTH TLS', ms)
  if (reply.code === 234) return
  throw new ProbeError('tls', `${control.address} does not offer AUTH TLS: ${control.shown(reply)}`, [
    'where the network is trusted, tls: off goes without; port 990 usually begins with TLS (tls: implicit)',
  ])
}
