import { Fault } from '../base/errors.ts'
import { bareHost, isLoopbackHost } from '../base/loopback.ts'

/** The address of a server. */
export type Address = {
  readonly secure: boolean
  /** A name or an IP address, without brackets. */
  readonly host: string
  readonly port: number
  /** The prefix of every path, e.g. `/ops`; may be empty. */
  readonly prefix: string
  /** The server's name in messages. */
  readonly label: string
  /** Whether the host as written is loopback. A resolver may still map the name to another address. */
  readonly loopback: boolean
  /** Plain http is allowed to loopback only, so the connection's actual address must be loopback too. */
  readonly loopbackOnly: boolean
}

const usage = (message: string, ...hints: readonly string[]): Fault => new Fault('Usage', message, { hints })
const example = 'A base URL looks like https://svc.example.com or https://example.com/ops'

/**
 * Parses a base URL, with or without a path and trailing slashes. Throws `Fault` Usage for schemes other than http and
 * https, for user information, a query or a fragment, and for plain http to another machine unless that is allowed
 * (K5).
 *
 * @example
 * ```ts
 * const { host, port, prefix, secure } = readAddress('https://example.com/ops/', false)
 * [host, port, prefix, secure] // ['example.com', 443, '/ops', true]
 * ```
 */
export function readAddress(baseUrl: string, insecureHttp: boolean): Address {
  const input = baseUrl.trim()
  if (input === '') throw usage('--server is empty', example)
  const url = URL.parse(input)
  if (url === null || !/^https?:$/.test(url.protocol)) throw notHttp(input)
  if (url.username !== '' || url.password !== '') {
    throw usage('--server must not contain a user name or password', `Leave them out: ${url.origin}${url.pathname}`)
  }
  if (url.search !== '' || url.hash !== '') {
    throw usage(
      '--server must not contain a query (?) or a fragment (#)',
      `Use the base URL alone: ${url.origin}${url.pathname}`,
    )
  }
  const secure = url.protocol === 'https:'
  const host = bareHost(url.hostname)
  const loopback = isLoopbackHost(host)
  if (!secure && !loopback && !insecureHttp) {
    throw usage(
      `plain http to ${url.host} is refused: the traffic would not be encrypted`,
      `If the server supports https: --server https://${url.host}`,
      'On a trusted network: --insecure-http',
    )
  }
  const prefix = url.pathname.replace(/(?<!\/)\/+$/, '')
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port)
  return {
    secure,
    host,
    port,
    prefix,
    label: `${url.origin}${prefix}`,
    loopback,
    loopbackOnly: !secure && !insecureHttp,
  }
}

function notHttp(input: string): Fault {
  // The text before an @ may be a password.
  const label = input.replace(/^.*@/s, '…@').slice(0, 200)
  const completed = input.includes('@') || input.includes('://') ? null : URL.parse(`http://${input}`)
  const meant = completed && `${isLoopbackHost(completed.hostname) ? 'http' : 'https'}://${input}`
  return usage(`--server "${label}" is not an http or https URL`, meant ? `Did you mean --server ${meant}` : example)
}
