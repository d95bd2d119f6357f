import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { NotReachedError, ProbeError } from '../probe-error.ts'
import { connectDirectly, hostPort, noteConnection, waitFor } from './connect.ts'
import { sanitize } from './text.ts'
import { hostOf, portOf } from './url.ts'

type Account = { readonly username: string; readonly password: string }
export type Proxy = {
  /** `http://host:port` or `socks5://host:port`. */
  readonly url: URL
  readonly account?: Account | undefined
  readonly resolve: (host: string) => Promise<readonly string[]>
}

/** Why a proxy did not connect. `isOfPeer`: it tried, and the server did not answer it. */
type Refusal = { readonly isOfPeer: boolean; readonly why: string }
const ofPeer = (why: string): Refusal => ({ isOfPeer: true, why })
const ofProxy = (why: string): Refusal => ({ isOfPeer: false, why })
const refusedSignIn = (account: Account | undefined): Refusal =>
  ofProxy(
    account
      ? `refused the sign-in of ${sanitize(account.username, 64)}`
      : 'demands a sign-in (proxyUsername, proxyPassword)',
  )

/**
 * Connects to a server by a proxy, which resolves its name. The signal destroys the socket, also later. Throws
 * NotReachedError where the proxy failed, and ProbeError where it reports that the server does.
 */
export const connectByProxy =
  ({ url, account, resolve }: Proxy) =>
  async (host: string, port: number, signal: AbortSignal): Promise<Socket> => {
    const own = portOf(url, 1_080)
    const [place, target] = [hostPort(hostOf(url), own), hostPort(host, port)]
    const failed = (why: string): NotReachedError =>
      new NotReachedError('route', `the proxy ${place} ${why}, so that ${target} was not reached`)
    let socket: Socket | undefined
    try {
      waitFor((within) => failed(`did not accept a connection within ${within}`))
      const [ip = ''] = await resolve(hostOf(url))
      socket = await connectDirectly(ip, own, signal)
      waitFor((text) => new ProbeError('timeout', `the proxy ${place} has not connected to ${target} within ${text}`))
      const refusal = await (url.protocol === 'http:' ? askHttp : askSocks)(socket, host, port, account)
      waitFor(undefined)
      if (refusal?.isOfPeer)
        throw new ProbeError('refused', `${target} does not accept connections: the proxy ${place} ${refusal.why}`)
      if (refusal) throw failed(refusal.why)
      noteConnection(socket, target)
      return socket
    } catch (error) {
      socket?.destroy()
      if (signal.aborted || (error instanceof ProbeError && error.fault !== 'dns')) throw error
      const { code = '', message } = error as NodeJS.ErrnoException
      throw failed(meanings[code] ?? `failed: ${sanitize(message, 160)}`)
    }
  }

const meanings: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused the connection',
  ECONNRESET: 'closed the connection without an answer',
  HPE_INVALID_CONSTANT: 'does not speak HTTP',
}

type Ask = (socket: Socket, host: string, port: number, account?: Account) => Promise<Refusal | undefined>

/**
 * How proxies say that they tried, and that the server failed: by status (RFC 9110, 15.6), Proxy-Status (RFC 9209), the
 * header of Squid, or the words of tinyproxy.
 */
const triedInVain = /^50[24] |unable to connect|ERR_(?:CONNECT|DNS)_FAIL|error="?(?:connection|dns|destination)_/i

/** Opens a tunnel by CONNECT (RFC 9110, 9.3.6), in place of the request itself where the URL is http. */
const askHttp: Ask = async (socket, host, port, account) => {
  const target = hostPort(host, port)
  const credentials = Buffer.from(`${account?.username}:${account?.password}`).toString('base64')
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const { request } = process.getBuiltinModule('node:http')
  const headers = { Host: target, ...(account ? { 'Proxy-Authorization': `Basic ${credentials}` } : {}) }
  const exchange = request({ method: 'CONNECT', path: target, headers, createConnection: () => socket })
  exchange.once('error', reject)
  exchange.once('connect', (answer, _, first) => {
    // What the server has already sent.
    if (first.length > 0) socket.unshift(first)
    resolve(answer)
  })
  exchange.end()
  const { statusCode: status = 0, statusMessage = '', headers: heads } = await promise
  if (status >= 200 && status < 300) return undefined
  // tinyproxy answers 401 to a wrong password.
  if (status === 407 || status === 401) return refusedSignIn(account)
  const hints = `${status} ${statusMessage} ${String(heads['x-squid-error'])} ${String(heads['proxy-status'])}`
  return (triedInVain.test(hints) ? ofPeer : ofProxy)(
    `answered ${sanitize(`${status} ${statusMessage}`, 80)} to CONNECT`,
  )
}

/** The replies of SOCKS (RFC 1928, 6). */
const socksReplies: readonly (Refusal | undefined)[] = [
  undefined,
  ofProxy('reports a failure without a cause'),
  ofProxy('does not allow this connection'),
  ofPeer('has no route to its network'),
  ofPeer('has no route to it'),
  ofPeer('was refused'),
  ofPeer('got no answer from it'),
]

/** SOCKS 5 (RFC 1928), with the sign-in of RFC 1929. The proxy resolves the name. */
const askSocks: Ask = async (socket, host, port, account) => {
  const text = (value: string): readonly number[] => [Buffer.byteLength(value), ...Buffer.from(value)]
  const [open, byPassword] = [0, 2]
  socket.write(Buffer.from(account ? [5, 2, open, byPassword] : [5, 1, open]))
  const [version, method] = await take(socket, 2)
  if (version !== 5) return ofProxy('does not speak SOCKS 5')
  if (method !== open && (method !== byPassword || !account)) return refusedSignIn(account)
  if (account && method === byPassword) {
    socket.write(Buffer.from([1, ...text(account.username), ...text(account.password)]))
    if ((await take(socket, 2))[1] !== 0) return refusedSignIn(account)
  }
  socket.write(Buffer.from([5, 1, 0, 3, ...text(host), port >> 8, port & 255]))
  const [, reply = 1, , form, more = 0] = await take(socket, 5)
  if (reply !== 0) return socksReplies[reply] ?? ofProxy(`answered ${reply}`)
  // The address that the proxy connects from, and its port: IPv4, IPv6, or a name after its length.
  await take(socket, (form === 1 ? 3 : form === 4 ? 15 : more) + 2)
  return undefined
}

/** The next bytes of a socket; what follows them stays in it. */
async function take(socket: Socket, count: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const ended = (): void => reject(Object.assign(new Error('the connection ended'), { code: 'ECONNRESET' }))
  const read = (): void => {
    const bytes = socket.read(count) as Buffer | null
    if (bytes?.length === count) resolve(bytes)
    else if (bytes !== null) ended()
  }
  // A listener for each attempt would be called again and again while there are too few bytes.
  socket.on('readable', read).on('error', reject).on('end', ended).on('close', ended)
  try {
    read()
    return await promise
  } finally {
    socket.off('readable', read).off('error', reject).off('end', ended).off('close', ended)
  }
}
