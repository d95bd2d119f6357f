import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { NotReachedError, ProbeError } from '../probe-error.ts'
import { connectDirectly, hostPort, noteConnection, waitFor } from './connect.ts'
import { sanitize } from './text.ts'
import { hostOf, portOf } from './url.ts'

export type Proxy = {
  /** `http://host:port` or `socks5://host:port`. */
  readonly url: URL
  readonly account?: { readonly username: string; readonly password: string } | undefined
  readonly resolve: (host: string) => Promise<readonly string[]>
}

/** Why a proxy did not connect: `peer` where it tried, and the server did not answer it. */
type Refusal = { readonly by: 'peer' | 'proxy'; readonly why: string }

/**
 * Connects to a server by a proxy, which resolves its name. The signal destroys the socket, also later. Throws
 * NotReachedError where the proxy failed, and ProbeError where it reports that the server does.
 */
export const connectByProxy =
  ({ url, account, resolve }: Proxy) =>
  async (host: string, port: number, signal: AbortSignal): Promise<Socket> => {
    const place = hostPort(hostOf(url), portOf(url, usualSocksPort))
    const target = hostPort(host, port)
    const failed = (why: string, details: readonly string[] = []): NotReachedError =>
      new NotReachedError('route', `the proxy ${place} ${why}, so that ${target} was not reached`, details)
    const failedWith = (error: unknown): unknown => {
      if (signal.aborted || error instanceof ProbeError) return error
      const { code, message } = error as NodeJS.ErrnoException
      const why = code === undefined ? undefined : meanings[code]
      return failed(why ?? `failed (${sanitize(code ?? message, 80)})`, code === undefined ? [] : [code])
    }
    waitFor((within) => failed(`did not accept a connection within ${within}`))
    const [ip = ''] = await resolve(hostOf(url)).catch((error: Error) => {
      throw signal.aborted ? error : failed(`has no usable name: ${error.message}`)
    })
    const socket = await connectDirectly(ip, portOf(url, usualSocksPort), signal).catch((error: unknown) => {
      throw failedWith(error)
    })
    waitFor((within) => new ProbeError('timeout', `the proxy ${place} has not connected to ${target} within ${within}`))
    try {
      const ask = url.protocol === 'socks5:' ? askSocks : askHttp
      const refusal = await ask(socket, host, port, account)
      waitFor(undefined)
      noteConnection(socket, target)
      if (refusal === undefined) return socket
      if (refusal.by === 'proxy') throw failed(refusal.why)
      throw new ProbeError('refused', `${target} does not accept connections: the proxy ${place} ${refusal.why}`)
    } catch (error) {
      socket.destroy()
      throw failedWith(error)
    }
  }

const usualSocksPort = 1_080

const meanings: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused the connection',
  ECONNRESET: 'closed the connection without an answer',
  EPIPE: 'closed the connection without an answer',
  ENETUNREACH: 'cannot be reached from this machine',
  EHOSTUNREACH: 'cannot be reached from this machine',
}

type Ask = (socket: Socket, host: string, port: number, account: Proxy['account']) => Promise<Refusal | undefined>

/**
 * How proxies say that they tried, and that the server failed: by status (RFC 9110, 15.6), Proxy-Status (RFC 9209), the
 * header of Squid, or the words of tinyproxy.
 */
const triedInVain = /^50[24] |unable to connect|ERR_(?:CONNECT|DNS)_FAIL|error="?(?:connection|dns|destination)_/i

/** Opens a tunnel by CONNECT (RFC 9110, 9.3.6), in place of the request itself where the URL is http. */
const askHttp: Ask = async (socket, host, port, account) => {
  const target = hostPort(host, port)
  const { username, password } = account ?? {}
  const credentials = Buffer.from(`${username}:${password}`).toString('base64')
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const request = process.getBuiltinModule('node:http').request({
    method: 'CONNECT',
    path: target,
    headers: { Host: target, ...(account ? { 'Proxy-Authorization': `Basic ${credentials}` } : {}) },
    createConnection: () => socket,
  })
  request.once('error', reject)
  request.once('connect', (answer, _, first) => {
    // What the server has already sent.
    if (first.length > 0) socket.unshift(first)
    resolve(answer)
  })
  request.end()
  const { statusCode: status = 0, statusMessage = '', headers } = await promise
  if (status >= 200 && status < 300) return undefined
  // tinyproxy answers 401 to a wrong password.
  if (status === 407 || status === 401) return { by: 'proxy', why: signInRefusal(account) }
  const answered = `answered ${sanitize(`${status} ${statusMessage}`, 80)} to CONNECT`
  const hints = `${status} ${statusMessage} ${String(headers['x-squid-error'])} ${String(headers['proxy-status'])}`
  return { by: triedInVain.test(hints) ? 'peer' : 'proxy', why: answered }
}

const signInRefusal = (account: Proxy['account']): string =>
  account === undefined
    ? 'demands a sign-in (proxyUsername, proxyPassword)'
    : `refused the sign-in of ${sanitize(account.username, 64)}`

/** The replies of SOCKS (RFC 1928, 6). */
const socksReplies: readonly Refusal[] = [
  { by: 'proxy', why: 'reports a failure without a cause' },
  { by: 'proxy', why: 'does not allow this connection' },
  { by: 'peer', why: 'has no route to its network' },
  { by: 'peer', why: 'has no route to it' },
  { by: 'peer', why: 'was refused' },
  { by: 'peer', why: 'got no answer from it' },
]

/** SOCKS 5 (RFC 1928), with the sign-in of RFC 1929. The proxy resolves the name. */
const askSocks: Ask = async (socket, host, port, account) => {
  const [no, byPassword] = [0, 2]
  const methods = account ? [no, byPassword] : [no]
  socket.write(Buffer.from([5, methods.length, ...methods]))
  const [version, method = 255] = await take(socket, 2)
  if (version !== 5) return { by: 'proxy', why: 'does not speak SOCKS 5' }
  if (account && method === byPassword) {
    const parts = [account.username, account.password].map((text) => Buffer.from(text))
    socket.write(Buffer.concat([Buffer.from([1]), ...parts.map((part) => Buffer.from([part.length, ...part]))]))
    const [, status] = await take(socket, 2)
    if (status !== 0) return { by: 'proxy', why: signInRefusal(account) }
  } else if (method !== no) return { by: 'proxy', why: signInRefusal(account) }
  const name = Buffer.from(host)
  socket.write(Buffer.from([5, 1, 0, 3, name.length, ...name, port >> 8, port & 255]))
  const [, reply = 1, , form, more = 0] = await take(socket, 5)
  if (reply !== 0) return socksReplies[reply - 1] ?? { by: 'proxy', why: `answered ${reply}` }
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
