import type { Socket } from 'node:net'
import { listen } from '../../assert/conversation.ts'
import type { CheckContext } from '../../engine/index.ts'
import { showDuration } from '../../format.ts'
import { isLoopback } from '../../loopback.ts'
import type { Chain } from '../../net/chain.ts'
import { connectTcp } from '../../net/connect.ts'
import type { PeerAddress } from '../../net/peer-address.ts'
import { nothingHidden } from '../../net/text.ts'
import { connectTls } from '../../net/tls-connect.ts'
import { whyDistrusted } from '../../net/trust.ts'
import { ProbeError } from '../../probe-error.ts'
import { resultFault } from './codes.ts'
import { LdapFrames, resultOf } from './message.ts'
import { isLdaps, type LdapSettings, ldapPlace } from './settings.ts'

export type LdapLink = { readonly socket: Socket; readonly chain: Chain | undefined }

/** ExtendedRequest 1.3.6.1.4.1.1466.20037 (RFC 4511, 4.14), as message 1. */
const startTls = Buffer.concat([
  Buffer.from('301d02010177188016', 'hex'),
  Buffer.from('1.3.6.1.4.1.1466.20037', 'latin1'),
])
const extendedResponse = 0x78
/** Bytes: the answer to StartTLS is short. */
const mostBytes = 4_096

/** Connects, with TLS as configured. A server that is not who it should be hears nothing but that. */
export async function connectLdap(
  target: PeerAddress,
  given: LdapSettings,
  ca: string | undefined,
  context: CheckContext,
): Promise<LdapLink> {
  const { ip, port, signal } = target
  if (!isLdaps(given) && !given.startTls) return { socket: await connectTcp(ip, port, signal), chain: undefined }
  const host = given.servername ?? ldapPlace(given).host
  const { socket, chain } = await connectTls(target, {
    host,
    ca,
    verify: true,
    date: context.date,
    ...(given.startTls ? { open: () => agreed(target, context) } : {}),
  })
  const why = whyDistrusted(chain)
  if (why === undefined) return { socket, chain }
  socket.destroy()
  throw new ProbeError('tls', why)
}

/** A socket on which TLS may begin. */
async function agreed({ ip, port, address, signal }: PeerAddress, context: CheckContext): Promise<Socket> {
  const socket = await connectTcp(ip, port, signal)
  try {
    socket.write(startTls)
    const ms = Math.max(1, context.msLeft() - 150, context.msLeft() / 2)
    const heard = await listen(socket, whole, mostBytes, ms)
    const protocol = (why: string): ProbeError => new ProbeError('protocol', `${address} ${why}`)
    if (heard.ended === 'silent') {
      const why = `accepted the connection and did not answer StartTLS within ${showDuration(ms)}`
      throw new ProbeError('timeout', `${address} ${why}`)
    }
    const frames = new LdapFrames(address)
    const [message, ...more] = frames.take(heard.bytes)
    if (heard.ended === 'closed' && !message) throw protocol('closed the connection instead of beginning TLS')
    const result = message && resultOf(message)
    if (result?.tag !== extendedResponse) throw protocol('did not answer StartTLS')
    if (result.code !== 0) {
      throw resultFault(result, { address, doing: 'StartTLS', user: undefined, hide: nothingHidden })
    }
    // What is said unencrypted behind the answer may be somebody else's, slipped in.
    if (more.length > 0 || !frames.empty) throw protocol('went on unencrypted after it had agreed to StartTLS')
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** Whether a message is whole, or never will be. */
function whole(heard: Buffer): boolean {
  try {
    return new LdapFrames('').take(heard).length > 0
  } catch {
    return true
  }
}

/** Throws ProbeError `data` where a password would travel readable to another machine. */
export function refuseReadable(link: LdapLink, target: PeerAddress, given: LdapSettings): void {
  if (link.chain !== undefined || given.insecureLdap || isLoopback(target.ip)) return
  const advice = 'use ldaps://, startTls, or insecureLdap'
  throw new ProbeError('data', `a password is not sent to ${target.address} over plain ldap: ${advice}`)
}
