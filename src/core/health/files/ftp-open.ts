import type { Socket } from 'node:net'
import { ProbeError, type World } from '../monitor.ts'
import { connectTcp } from '../net.ts'
import type { Target } from '../probe/addresses.ts'
import { readCaFile } from '../probe/anchors.ts'
import { whyDistrusted } from '../probe/certificates.ts'
import type { Chain } from '../probe/chain.ts'
import type { Hide } from '../probe/text.ts'
import { connectTls } from '../probe/tls-connect.ts'
import { Control } from './ftp-control.ts'
import { type Keep, type Link, type LinkTls, wait } from './ftp-link.ts'
import type { Reply } from './ftp-reply.ts'
import type { FtpSettings } from './ftp-settings.ts'

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
const firstWait = (world: World): number => Math.max(1, world.msLeft() - reserveMs, world.msLeft() / 2)

/**
 * Connects, hears the banner and agrees on TLS. Ends without a link where the banner or the certificate
 * forbids to go on. Every socket goes through `keep`: the caller destroys them.
 */
export async function* openFtp(
  target: Target,
  given: FtpSettings,
  world: World,
  hide: Hide,
  keep: Keep,
): AsyncGenerator<OpenSeen, Link | undefined> {
  const { address } = target
  const start = world.now()
  const dataHosts = given.dataHosts ?? []
  const connect = async (): Promise<Socket> => keep(await connectTcp(target.ip, target.port, target.signal))
  const greeted = async (socket: Socket): Promise<{ readonly control: Control; readonly banner: Banner }> => {
    const control = new Control(socket, address, hide)
    const reply = await control.first(firstWait(world))
    return { control, banner: bannerOf(control, reply, world.now() - start) }
  }
  const link = (control: Control, tls?: LinkTls): Link => ({ control, target, world, hide, keep, dataHosts, tls })
  if (given.tls === 'implicit') {
    target.step('TLS')
    const { tls, socket, seen } = await secure(target, given, world, keep, connect)
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
  await agree(control, wait(world))
  let first: Socket | undefined = control.detach()
  const { tls, socket, seen } = await secure(target, given, world, keep, async () => {
    const prepared = first
    first = undefined
    if (prepared) return prepared
    // The chain is looked at again with other roots: the way up to TLS begins anew.
    const again = await greeted(await connect())
    if (again.banner.code !== 220) throw new ProbeError('refused', `${address} said ${again.banner.said}`)
    await agree(again.control, wait(world))
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
async function secure(target: Target, given: FtpSettings, world: World, keep: Keep, open: () => Promise<Socket>) {
  const host = given.servername ?? given.host.replace(/^\[(.*)\]$/, '$1')
  const ca = await readCaFile(given.caFile)
  const made = await connectTls(target, { host, ca, verify: true, date: world.date, open })
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
