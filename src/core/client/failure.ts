import { Fault, type FaultName, type FieldFault } from '../base/errors.ts'
import { type ProxyServer, proxySetting } from '../base/proxy-variables.ts'
import { sanitizeAndCut } from '../base/sanitize.ts'
import {
  isMarked,
  maxRemedyLines,
  mustChangeCode,
  type Operation,
  type OperationSpec,
  operations,
  type ResponseStatus,
  rehearsalMember,
  remedyKey,
} from '../protocol/index.ts'
import type { Address } from './address.ts'
import type { Received, Stage } from './exchange.ts'
import { isTrustError } from './trust.ts'

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
const maxRedirects = 3

/** Recognizes the address of a login page by its path, its host or its return parameter. */
const loginPath = /(?:^|[/._-])(?:log-?[io]n|sign-?[io]n|sso|authorize|saml2?)(?:[/._-]|$)/i
const loginHost = /^(?:login|signin|sso|auth|accounts|idp)\./i
const wayBack = /^(?:redirect(?:_?ur[il])?|return_?url|continue|RelayState|SAMLRequest)$/i

/**
 * The path of the next request, or undefined when the answer is not a redirect. Only a GET follows redirects, and only
 * within its server: another server's health is not the answer, and a POST may carry a password (K5). Throws `Fault`
 * Unauthorized for a login page (C2), ServerError for any other target.
 */
export function redirectPath(
  received: Received,
  request: SentRequest,
  path: string,
  followed: number,
): string | undefined {
  const { location } = received.headers
  if (!redirects.has(received.status) || location === undefined) return undefined
  const { origin } = new URL(request.server)
  const target = URL.parse(location, `${origin}${path}`)
  const remoteStatus = received.status
  if (target === null || !/^https?:$/.test(target.protocol)) {
    throw new Fault('ServerError', `${request.server} redirects to an invalid address (${remoteStatus})`, {
      remoteStatus,
      hints: ['Is the base URL correct?'],
    })
  }
  // Without the query, which may hold secrets.
  const label = sanitizeServerText(`${target.origin}${target.pathname}`, 200)
  if (isLogin(target)) {
    throw new Fault('Unauthorized', `${request.server} redirects to a login page (${remoteStatus} to ${label})`, {
      remoteStatus,
      hints: ['The server, or a gateway in front of it, requires sign-in.'],
    })
  }
  if (request.method !== 'GET' || target.origin !== origin) {
    const base = sanitizeServerText(`${target.origin}${baseOf(target.pathname, request, origin)}`, 200)
    throw new Fault(
      'ServerError',
      `${request.server} redirects to ${label} (${remoteStatus}), which svc does not follow`,
      {
        remoteStatus,
        hints: [`If the service is there: --server ${base}`],
      },
    )
  }
  if (followed >= maxRedirects) {
    throw new Fault('ServerError', `${request.server} redirects more than ${maxRedirects} times`, {
      remoteStatus,
      hints: ['The server, or a proxy in front of it, may have a redirect loop.'],
    })
  }
  return `${target.pathname}${target.search}`
}

const isLogin = (target: URL): boolean =>
  loginPath.test(target.pathname) ||
  loginHost.test(target.hostname) ||
  [...target.searchParams.keys()].some((name) => wayBack.test(name))

/** The path of the new base URL: the redirect's path without the operation's own path. */
function baseOf(pathname: string, request: SentRequest, origin: string): string {
  const own = request.url.slice(request.server.length)
  const prefix = request.server.slice(origin.length)
  return pathname.endsWith(own) ? pathname.slice(0, -own.length) : prefix
}

/** Text from a server, sanitized for our messages. */
export const sanitizeServerText = (text: string, max = 300): string => sanitizeAndCut(text, max)

/** The request, for messages. */
export type SentRequest = {
  /** Absent for requests that are not operations of the interface. */
  readonly operation?: Operation | undefined
  readonly method: string
  /** The server: scheme, host, port and prefix. */
  readonly server: string
  /** The whole address without its query. */
  readonly url: string
}

type Refusal = { readonly fault: FaultName; readonly does: string }

/** HTTP status → fault. The status decides, never the text (C2). */
const refusals: Readonly<Record<number, Refusal>> = {
  400: { fault: 'BadRequest', does: 'rejects the request' },
  401: { fault: 'Unauthorized', does: 'requires sign-in' },
  403: { fault: 'Forbidden', does: 'denies permission' },
  404: { fault: 'NotFound', does: 'could not find this' },
  405: { fault: 'MethodNotAllowed', does: 'does not allow this method' },
  407: { fault: 'Unreachable', does: 'cannot be reached: a proxy requires a user name and password' },
  408: { fault: 'RequestTimeout', does: 'gave up waiting for the request' },
  409: { fault: 'Conflict', does: 'reports a conflict' },
  413: { fault: 'TooLarge', does: 'rejects the request as too large' },
  415: { fault: 'UnsupportedMediaType', does: 'does not accept JSON' },
  421: { fault: 'Misdirected', does: 'does not accept requests for that host name' },
  429: { fault: 'TooManyRequests', does: 'reports too many requests' },
  431: { fault: 'HeadersTooLarge', does: 'rejects the request headers as too large' },
  501: { fault: 'NotImplemented', does: 'does not support this operation' },
  503: { fault: 'Unavailable', does: 'is unavailable' },
}
const rejected: Refusal = { fault: 'BadRequest', does: 'rejects the request' }
const notSignedIn: Refusal = { fault: 'Unauthorized', does: 'rejects the sign-in' }
const failed: Refusal = { fault: 'ServerError', does: 'failed' }

/** The fault of an unsuccessful answer. `status` is its ResponseStatus; `text` its body when it has none. */
export function refusal(
  received: Received,
  request: SentRequest,
  status: ResponseStatus | undefined,
  text: string | undefined,
): Fault {
  const code = received.status
  const health = request.operation === 'healthCheck'
  // A missing /healthcheck means that this is the wrong server. Elsewhere, a server that has the operation says what
  // is missing (C7).
  if (request.operation && (code === 404 || code === 405) && (health || status === undefined)) {
    return noSuchOperation(received, request, request.operation)
  }
  const { fault, does } = request.operation === 'authenticate' && code === 401 ? notSignedIn : refusalFor(code, status)
  const wait = code === 429 || code === 503 ? retryAfter(received) : undefined
  const words = sanitizeServerText(status?.Message || status?.ErrorCode || text || '')
  const message = [
    `${request.server} ${does} (${code})`,
    ...(words === '' ? [] : [`: ${words}`]),
    ...(wait === undefined ? [] : [`; retry after ${wait} s (Retry-After)`]),
  ].join('')
  const errorCode = status?.ErrorCode
  const fields = fieldFaults(status)
  const remedy = remedyLines(status)
  return new Fault(fault, message, {
    remoteStatus: code,
    ...(words === '' ? {} : { remoteMessage: words }),
    hints:
      errorCode === mustChangeCode
        ? [`svc passwd --server ${request.server}`]
        : remedy.length > 0
          ? remedy
          : hintsFor(fault, request, received),
    ...(fields.length > 0 ? { fields } : {}),
    ...(errorCode !== undefined && /^[A-Za-z][\w.]{0,99}$/.test(errorCode) ? { errorCode } : {}),
    ...(wait === undefined ? {} : { retryAfter: wait }),
    ...(isMarked(status?.Message ?? '') && rehearsalMember),
  })
}

function refusalFor(code: number, status: ResponseStatus | undefined): Refusal {
  // Since 5.9, real servers answer validation errors with 500.
  if (code >= 500 && status?.ErrorCode === 'ValidationException') return rejected
  return refusals[code] ?? (code >= 400 && code < 500 ? rejected : failed)
}

function noSuchOperation(received: Received, { method, server, url }: SentRequest, operation: Operation): Fault {
  const health = operation === 'healthCheck'
  return new Fault(
    'NoSuchOperation',
    `${server} has no ${health ? 'health operation' : operations[operation].name} (${received.status} for ${method} ${url})`,
    {
      remoteStatus: received.status,
      hints: [
        ...(health
          ? ['ServiceStack itself has none: the service must define HealthCheckRequest, as svc serve does.']
          : []),
        `Is the base URL correct? svc requests ${operations[operation].routes[0].path} under ${server}`,
      ],
    },
  )
}

function hintsFor(fault: FaultName, { operation, server }: SentRequest, { headers }: Received): readonly string[] {
  switch (fault) {
    case 'Unauthorized':
    case 'Forbidden':
      if (!operation) return fault === 'Unauthorized' ? [`Sign in: svc login --server ${server}`] : []
      if (operation === 'authenticate') return ['Check the user name, the password and the provider.']
      if (operations[operation].caller === 'user') {
        return fault === 'Unauthorized' ? [`Sign in: svc login --server ${server}`] : []
      }
      return operations[operation].caller === 'anyone'
        ? ['A health check itself requires no sign-in: a gateway or proxy in front of the server may require it.']
        : [
            `You must be signed in and have ${neededBy(operation)}.`,
            ...(fault === 'Unauthorized' ? [`Sign in: svc login --server ${server}`] : []),
          ]
    case 'Unreachable':
      return ['Put them into the URL of the proxy, before its host: USER:PASSWORD@HOST:PORT']
    case 'Misdirected':
      return [
        `Use a host name that the server accepts, or start the server with: svc serve --allowed-host ${URL.parse(server)?.hostname}`,
      ]
    case 'ServerError':
      // Only a server that returns the id has read it.
      return headers['x-correlation-id'] === undefined
        ? ['See the log of the server.']
        : ['See the log of the server, which contains the correlation id of this call.']
    case 'Unavailable':
    case 'TooManyRequests':
      return ['Try again later.']
    default:
      return []
  }
}

function neededBy(operation: Operation): string {
  const { caller }: OperationSpec = operations[operation]
  return typeof caller === 'string' ? `the role ${caller}` : `the permission ${caller.permission}, or the role Admin`
}

/** Seconds. The header holds seconds or a date. */
function retryAfter({ headers }: Received): number | undefined {
  const header = headers['retry-after']
  if (header === undefined) return undefined
  if (/^\d{1,9}$/.test(header)) return Number(header)
  const at = Date.parse(header)
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - Date.now()) / 1_000))
}

/** The remedy of the server. Nobody becomes another account of this machine because a server says so. */
const remedyLines = (status: ResponseStatus | undefined): readonly string[] =>
  (status?.Meta?.[remedyKey] ?? '')
    .split('\n', maxRemedyLines)
    .map((line) => sanitizeServerText(line))
    .filter((line) => line !== '' && !/\bsudo\b/i.test(line))

const maxFields = 20

const fieldFaults = (status: ResponseStatus | undefined): readonly FieldFault[] =>
  (status?.Errors ?? []).slice(0, maxFields).map((error) => ({
    ErrorCode: sanitizeServerText(error.ErrorCode ?? '', 100),
    FieldName: sanitizeServerText(error.FieldName ?? '', 100),
    Message: sanitizeServerText(error.Message ?? ''),
  }))

/** A failure in words. `fault` defaults to Unreachable. */
export type FailureDescription = {
  readonly fault?: FaultName
  readonly message: string
  readonly hints: readonly string[]
}

export const isTlsCode = (code: string): boolean =>
  code === 'EPROTO' || /^(?:ERR_TLS|ERR_SSL|CERT_|HOSTNAME_MISMATCH|INVALID_CA)/.test(code) || isTrustError(code)

/** Describes a failed TLS handshake. */
export function describeTls(code: string, error: Error, server: string): FailureDescription {
  const failed = (why: string, ...hints: readonly string[]): FailureDescription => ({
    message: `TLS with ${server} failed: ${why} (${code})`,
    hints,
  })
  if (isTrustError(code)) {
    const selfSigned = code === 'DEPTH_ZERO_SELF_SIGNED_CERT'
    return failed(
      selfSigned ? 'its certificate is self-signed' : 'the issuer of its certificate is not trusted',
      'If you trust it, add its certificate authority: --ca-file FILE (PEM) or SVC_CA_FILE',
    )
  }
  switch (code) {
    case 'CERT_HAS_EXPIRED':
      return failed('its certificate has expired', 'Renew the certificate, or correct the clock of this machine.')
    case 'CERT_NOT_YET_VALID':
      return failed('its certificate is not valid yet', 'Check the clock of this machine.')
    case 'ERR_TLS_CERT_ALTNAME_INVALID': {
      const { reason } = error as { reason?: unknown }
      return failed(
        `its certificate is for another name: ${sanitizeServerText(typeof reason === 'string' ? reason : error.message, 200)}`,
        'Set --server to a name that the certificate contains.',
      )
    }
    default:
  }
  if (/wrong version number|packet length too long|WRONG_VERSION|PACKET_LENGTH/.test(`${code} ${error.message}`)) {
    return failed('that port does not use TLS', 'If the server uses plain http: --server http://…')
  }
  if (
    /alert certificate required|bad certificate|CERTIFICATE_REQUIRED|BAD_CERTIFICATE/.test(`${code} ${error.message}`)
  ) {
    return failed('it requires a client certificate', 'svc does not support client certificates.')
  }
  return failed(sanitizeServerText(error.message, 160), 'svc requires TLS 1.2 or later.')
}

/** The exchange that failed. */
export type FailurePlace = {
  readonly address: Address
  readonly proxy: ProxyServer | undefined
  readonly stage: Stage
  /** Whether the server sent nothing, not even on a second connection. */
  readonly hangs?: boolean | undefined
}

/**
 * Explains a connection failure to an operator and says what to do next. Undefined for any other error, which is a
 * defect of ours. Drops Node's own error: it may hold certificates and a proxy's password.
 */
export function transportFault(error: unknown, where: FailurePlace): Fault | undefined {
  if (!(error instanceof Error) || error instanceof TypeError) return undefined
  const { code } = error as NodeJS.ErrnoException
  if (typeof code !== 'string') return undefined
  const description = describe(code, error, where)
  if (description === undefined) return undefined
  const { fault, message, hints } = description
  return new Fault(fault ?? 'Unreachable', message, { hints: [...hints, ...byProxy(where)] })
}

/** The fault of a call that exceeded its deadline (C2). Says how far the exchange had come. */
export function timeoutFault(ms: number, where: FailurePlace): Fault {
  const { address, proxy, stage, hangs = false } = where
  const span = seconds(ms)
  const next = nextStop(where)
  const descriptions: Record<Stage, readonly [what: string, hint: string]> = {
    resolving: [`the name ${hostOf(where)} was not resolved`, 'Is a DNS server reachable from this machine?'],
    connecting: [`${next} did not accept a connection`, blockedPort],
    tunnel: [`${next} did not connect to ${address.label}`, 'Can the proxy reach that server?'],
    handshake: [`${next} accepted the connection, but did not finish the TLS handshake`, 'Does that port use TLS?'],
    asking: hangs
      ? [`${address.label} accepts connections, but hangs: it does not answer /livez either`, hangHint]
      : [
          `${address.label} accepted the connection, but did not answer`,
          'The server may hang, or its checks may take longer: --timeout allows more time.',
        ],
    reading: [`${address.label} began to answer, but did not finish`, 'The server or the network may have stalled.'],
  }
  const [what, hint] = descriptions[stage]
  const hints = [hint, ...(proxy && stage === 'asking' ? byProxy(where) : [])]
  return new Fault('Timeout', `No answer within ${span}: ${what}`, { hints })
}

/**
 * The fault of a server that accepts connections and says nothing, in milliseconds without an answer to the request and
 * to `/livez`.
 */
export function hangFault(silentMs: number, aliveMs: number, where: Pick<FailurePlace, 'address' | 'proxy'>): Fault {
  const message = `${where.address.label} accepts connections, but hangs: no answer for ${seconds(silentMs)}, and none to /livez for ${seconds(aliveMs)}`
  const hints = [hangHint, '--timeout 60s waits that long, whatever the server does.', ...byProxy(where)]
  return new Fault('Timeout', message, { hints })
}

const hangHint = 'On its machine: is the process frozen, out of memory, or blocked? A restart may help.'
const seconds = (ms: number): string => `${Number((ms / 1_000).toFixed(1))} s`

const hostOf = ({ address, proxy }: FailurePlace): string => (proxy ?? address).host
/** The next hop: the server, or the proxy in front of it. */
const nextStop = ({ address, proxy }: FailurePlace): string =>
  proxy ? `the proxy of ${proxy.variable} (${proxy.label})` : address.label

function byProxy({ proxy }: Pick<FailurePlace, 'proxy'>): readonly string[] {
  if (!proxy) return []
  const bypass = proxy.variable === proxySetting ? '' : ' To bypass it for a host, add the host to NO_PROXY.'
  return [`The request used the proxy of ${proxy.variable} (${proxy.label}).${bypass}`]
}

const blockedPort = 'The machine may be down, or a firewall may drop packets to that port.'

/** The meanings of the error codes of the system and of DNS, each with its codes. The code follows the message. */
const meanings: readonly {
  readonly codes: readonly string[]
  readonly fault?: FaultName
  readonly message: (where: FailurePlace) => string
  readonly hints: (where: FailurePlace) => readonly string[]
}[] = [
  {
    codes: ['ENOTFOUND', 'ENODATA', 'EAI_FAIL', 'EAI_NODATA', 'EAI_NONAME'],
    message: (where) => `The name ${hostOf(where)} does not resolve`,
    hints: ({ address, proxy }) => [
      `Is the name correct? ${proxy ? `It is set in ${proxy.variable}.` : `The server is ${address.label}.`}`,
    ],
  },
  {
    codes: ['EAI_AGAIN', 'ESERVFAIL', 'ETIMEOUT'],
    message: (where) => `The name ${hostOf(where)} cannot be resolved at the moment`,
    hints: () => ['No DNS server responds: is this machine connected to the network, and to the VPN if one is needed?'],
  },
  {
    codes: ['ECONNREFUSED'],
    message: (where) => `${nextStop(where)} refuses connections`,
    hints: ({ address, proxy }) =>
      proxy
        ? [`Is the proxy running? It is set in ${proxy.variable}.`]
        : ['The machine is up, but nothing listens on that port.', refusedHint(address)],
  },
  {
    codes: ['EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ENETDOWN', 'EADDRNOTAVAIL'],
    message: (where) => `There is no route to ${nextStop(where)}`,
    hints: () => ['The network or a firewall blocks the connection, not the service: is the VPN connected?'],
  },
  {
    codes: ['ETIMEDOUT'],
    message: (where) => `${nextStop(where)} does not accept a connection`,
    hints: () => [blockedPort],
  },
  {
    codes: ['EACCES', 'EPERM'],
    message: (where) => `This machine blocks connections to ${nextStop(where)}`,
    hints: () => ['A local firewall or sandbox does not allow them.'],
  },
  {
    codes: ['EMFILE', 'ENFILE'],
    fault: 'Local',
    message: () => 'Too many open files',
    hints: () => ['Raise the limit: ulimit -n'],
  },
]

function describe(code: string, error: Error, where: FailurePlace): FailureDescription | undefined {
  const { address, stage } = where
  const meaning = meanings.find(({ codes }) => codes.includes(code))
  if (meaning) {
    const { fault = 'Unreachable', message, hints } = meaning
    return { fault, message: `${message(where)} (${code})`, hints: hints(where) }
  }
  if (code === 'ERR_PROXY_TUNNEL') return tunnel(error, where)
  if (['ECONNRESET', 'EPIPE', 'ECONNABORTED'].includes(code)) return closed(code, where)
  if (code.startsWith('HPE_')) {
    return {
      fault: 'UnreadableAnswer',
      message: `${address.label} returned something that is not HTTP (${code})`,
      hints: [address.secure ? 'Is that the right port?' : 'Is that the right port, or does it require https://?'],
    }
  }
  if (isTlsCode(code)) return describeTls(code, error, stage === 'handshake' ? nextStop(where) : address.label)
  // Node's own errors, e.g. about a module, are not network failures.
  if (code.startsWith('ERR_')) return undefined
  return {
    message: `The connection to ${address.label} failed (${code}${stage === 'handshake' ? ', TLS' : ''})`,
    hints: ['Is the base URL correct?'],
  }
}

const refusedHint = ({ loopback, port, label }: Address): string =>
  loopback
    ? `Are the host and port correct (${label})? To start a server here: svc serve --port ${port}`
    : `Is svc serve, or the service, running there? Are the host and port correct (${label})?`

function closed(code: string, where: FailurePlace): FailureDescription {
  const { address, stage } = where
  if (stage === 'asking' || stage === 'reading') {
    return {
      fault: 'UnreadableAnswer',
      message: `${address.label} closed the connection before it ${stage === 'asking' ? 'answered' : 'had answered'} (${code})`,
      hints: [
        address.secure ? 'The service may have crashed or be restarting.' : 'Does that port require https:// instead?',
      ],
    }
  }
  return {
    message: `${nextStop(where)} closed the connection (${code}${stage === 'handshake' ? ', in the TLS handshake' : ''})`,
    hints: [stage === 'handshake' ? 'Does that port use TLS? If not, use http://' : 'Is that the right port?'],
  }
}

function proxySignIn(status: number, where: FailurePlace): FailureDescription {
  const { variable = '', url = '' } = where.proxy ?? {}
  const does = URL.parse(url)?.username ? 'rejects the' : 'requires a'
  return {
    message: `${nextStop(where)} ${does} user name and password (${status})`,
    hints: [
      variable === proxySetting
        ? 'Set proxyUsername and proxyPassword beside `proxy:`.'
        : `Put them into ${variable}, before the host: USER:PASSWORD@HOST:PORT`,
    ],
  }
}

function tunnel(error: Error, where: FailurePlace): FailureDescription {
  const { statusCode } = error as { statusCode?: unknown }
  const next = nextStop(where)
  // tinyproxy answers a wrong password with 401.
  if (statusCode === 407 || statusCode === 401) return proxySignIn(statusCode, where)
  const status = typeof statusCode === 'number' && Number.isInteger(statusCode) ? ` (${statusCode})` : ''
  return {
    message: `${next} does not allow a connection to ${where.address.label}${status}`,
    hints: ['Can the proxy reach that server, and is it allowed to?'],
  }
}
