import type { Socket } from 'node:net'
import type { CheckContext } from '../../engine/index.ts'
import type { Chain } from '../../net/chain.ts'
import { connectTcp } from '../../net/connect.ts'
import type { PeerAddress } from '../../net/peer-address.ts'
import { connectTls } from '../../net/tls-connect.ts'
import { whyDistrusted } from '../../net/trust.ts'
import { ProbeError } from '../../probe-error.ts'
import { sound } from './faults.ts'
import type { Asker } from './look.ts'
import type { RedisTarget } from './settings.ts'

/** Connects, with TLS for rediss. Throws ProbeError `tls` for a server that is not who it should be. */
export async function connect(
  at: PeerAddress,
  target: RedisTarget,
  servername: string | undefined,
  ca: string | undefined,
  context: CheckContext,
): Promise<{ readonly socket: Socket; readonly chain: Chain | undefined }> {
  if (!target.tls) return { socket: await connectTcp(at.ip, at.port, at.signal), chain: undefined }
  const link = await connectTls(at, { host: servername ?? target.host, ca, verify: true, date: context.date })
  const why = whyDistrusted(link.chain)
  if (why === undefined) return link
  link.socket.destroy()
  throw new ProbeError('tls', why)
}

/** Throws ProbeError `auth` for a refusal. */
export async function signIn({ link, target }: Asker, password: string): Promise<void> {
  const { user } = target
  const reply = await (user === undefined ? link.ask('AUTH', password) : link.ask('AUTH', user, password))
  if (sound(reply, link, user) !== 'OK') {
    throw new ProbeError('protocol', `${link.address} answered the sign-in with something else than OK`)
  }
}
