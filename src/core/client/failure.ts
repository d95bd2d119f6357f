import { Fault, type FaultName } from '../errors.ts'
import type { Address } from './address.ts'
import type { Stage } from './exchange.ts'
import type { ProxyServer } from './proxy.ts'
import { sanitizeServerText } from './refusal.ts'
import { isTrustError } from './trust.ts'

/** A failure in words. `fault` defaults to Unreachable. */
export type FailureDescription = {
  readonly fault?: FaultName
  readonly message: string
  readonly hints: readonly string[]
}

export const isTlsCode = (code: string): boolean =>
  code === 'EPROTO' || /^(?:ERR_TLS|ERR_SSL|CERT_|HOSTNAME_MISMATCH|INVALID_CA)/.test(code) || isTrustError(code)

/** Describes a failed TLS handshake. */
export function tellTls(code: string, error: Error, server: string): FailureDescription {
  const failed = (why: string, ...hints: readonly string[]): FailureDescription => ({
    message: `TLS with ${server} failed: ${why} (${code})`,
    hints,
  })
  if (isTrustError(code)) {
    const selfSigned = code === 'DEPTH_ZERO_SELF_SIGNED_CERT'
    return failed(
      selfSigned ? 'its certificate is self-signed' : 'the issuer of its certificate is unknown here',
      'If it is yours, name its authority: --ca-file FILE (PEM), or SVC_CA_FILE',
    )
  }
  switch (code) {
    case 'CERT_HAS_EXPIRED':
      return failed('its certificate has expired', 'Renew it; and is the clock of this machine right?')
    case 'CERT_NOT_YET_VALID':
      return failed('its certificate is not valid yet', 'Is the clock of this machine right?')
    case 'ERR_TLS_CERT_ALTNAME_INVALID': {
      const { reason } = error as { reason?: unknown }
      return failed(
        `its certificate is for another name: ${sanitizeServerText(typeof reason === 'string' ? reason : error.message, 200)}`,
        'Use a name that the certificate holds as --server.',
      )
    }
    default:
  }
  if (/wrong version number|packet length too long|WRONG_VERSION|PACKET_LENGTH/.test(`${code} ${error.message}`)) {
    return failed('that port does not speak TLS', 'Is it plain http? Then --server http://…')
  }
  if (
    /alert certificate required|bad certificate|CERTIFICATE_REQUIRED|BAD_CERTIFICATE/.test(`${code} ${error.message}`)
  ) {
    return failed('it wants a certificate of the caller', 'Certificates of callers are not supported.')
  }
  return failed(sanitizeServerText(error.message, 160), 'TLS 1.2 or newer is spoken here.')
}

/** The exchange that failed. */
export type FailurePlace = {
  readonly address: Address
  readonly proxy: ProxyServer | undefined
  readonly stage: Stage
}

/**
 * Explains a connection failure to an operator and says what to do next. Undefined for any other error, which is a
 * defect of ours. Drops Node's own error: it may hold certificates and a proxy's password.
 */
export function transportFault(error: unknown, where: FailurePlace): Fault | undefined {
  if (!(error instanceof Error) || error instanceof TypeError) return undefined
  const { code } = error as NodeJS.ErrnoException
  if (typeof code !== 'string') return undefined
  const description = tell(code, error, where)
  if (description === undefined) return undefined
  const { fault, message, hints } = description
  return new Fault(fault ?? 'Unreachable', message, { hints: [...hints, ...byProxy(where)] })
}

/** The fault of a call that exceeded its deadline (C2). Says how far the exchange had come. */
export function timeoutFault(ms: number, where: FailurePlace): Fault {
  const { address, proxy, stage } = where
  const span = `${Number((ms / 1_000).toFixed(1))} s`
  const next = nextStop(where)
  const descriptions: Record<Stage, readonly [what: string, hint: string]> = {
    resolving: [`the name ${hostOf(where)} was not resolved`, 'Is a name server reachable from here?'],
    connecting: [
      `${next} did not accept a connection`,
      'The machine may be down, or a firewall may drop what is sent to that port.',
    ],
    tunnel: [`${next} did not connect to ${address.label}`, 'Can the proxy reach that server?'],
    handshake: [`${next} accepted the connection, but did not finish the TLS handshake`, 'Does that port speak TLS?'],
    asking: [
      `${address.label} accepted the connection, but did not answer`,
      'The server accepts connections and hangs; or its checks take longer: --timeout gives them more time.',
    ],
    reading: [`${address.label} began to answer, but did not finish`, 'The server or the network stalls.'],
  }
  const [what, hint] = descriptions[stage]
  const hints = [hint, ...(proxy && stage === 'asking' ? byProxy(where) : [])]
  return new Fault('Timeout', `No answer within ${span}: ${what}`, { hints })
}

const hostOf = ({ address, proxy }: FailurePlace): string => (proxy ?? address).host
/** The next hop: the server, or the proxy in front of it. */
const nextStop = ({ address, proxy }: FailurePlace): string =>
  proxy ? `the proxy of ${proxy.variable} (${proxy.label})` : address.label

const byProxy = ({ proxy }: FailurePlace): readonly string[] =>
  proxy
    ? [`This went by the proxy that ${proxy.variable} names (${proxy.label}); NO_PROXY lists what goes past it.`]
    : []

function tell(code: string, error: Error, where: FailurePlace): FailureDescription | undefined {
  const { address, proxy, stage } = where
  const next = nextStop(where)
  switch (code) {
    case 'ENOTFOUND':
    case 'ENODATA':
    case 'EAI_FAIL':
    case 'EAI_NODATA':
    case 'EAI_NONAME':
      return {
        message: `The name ${hostOf(where)} does not resolve (${code})`,
        hints: [`Is the name right? ${proxy ? `It stands in ${proxy.variable}.` : `The server is ${address.label}.`}`],
      }
    case 'EAI_AGAIN':
    case 'ESERVFAIL':
    case 'ETIMEOUT':
      return {
        message: `The name ${hostOf(where)} cannot be resolved now (${code})`,
        hints: ['No name server answers: is this machine on the network, and on the VPN if there is one?'],
      }
    case 'ECONNREFUSED':
      return {
        message: `${next} refuses connections (${code})`,
        hints: proxy
          ? [`Is the proxy running there? ${proxy.variable} names it.`]
          : ['The machine is up, but nothing listens on that port.', refusedHint(address)],
      }
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'EHOSTDOWN':
    case 'ENETDOWN':
    case 'EADDRNOTAVAIL':
      return {
        message: `There is no route to ${next} (${code})`,
        hints: ['The network or a firewall is in the way, not the service: is the VPN up?'],
      }
    case 'ETIMEDOUT':
      return {
        message: `${next} does not accept a connection (${code})`,
        hints: ['The machine may be down, or a firewall may drop what is sent to that port.'],
      }
    case 'EACCES':
    case 'EPERM':
      return {
        message: `This machine does not let a connection to ${next} out (${code})`,
        hints: ['A local firewall or sandbox forbids it.'],
      }
    case 'EMFILE':
    case 'ENFILE':
      return { fault: 'Local', message: `Too many open files (${code})`, hints: ['Raise the limit: ulimit -n'] }
    case 'ERR_PROXY_TUNNEL':
      return tunnel(error, where)
    case 'ECONNRESET':
    case 'EPIPE':
    case 'ECONNABORTED':
      return closed(code, where)
    default:
  }
  if (code.startsWith('HPE_')) {
    return {
      fault: 'UnreadableAnswer',
      message: `${address.label} answered something that is not HTTP (${code})`,
      hints: [address.secure ? 'Is that the right port?' : 'Is that the right port, or does it want https://?'],
    }
  }
  if (isTlsCode(code)) return tellTls(code, error, stage === 'handshake' ? next : address.label)
  // Node's own errors, e.g. about a module, are not network failures.
  if (code.startsWith('ERR_')) return undefined
  return {
    message: `The connection to ${address.label} failed (${code}${stage === 'handshake' ? ', TLS' : ''})`,
    hints: ['Is the base URL right?'],
  }
}

const refusedHint = ({ loopback, port, label }: Address): string =>
  loopback
    ? `Are host and port right (${label})? To start a server here: svc serve --port ${port}`
    : `Is svc serve, or the service, running there? Are host and port right (${label})?`

function closed(code: string, where: FailurePlace): FailureDescription {
  const { address, stage } = where
  if (stage === 'asking' || stage === 'reading') {
    return {
      fault: 'UnreadableAnswer',
      message: `${address.label} closed the connection before it ${stage === 'asking' ? 'answered' : 'had answered'} (${code})`,
      hints: [
        address.secure ? 'The service may have crashed or be restarting.' : 'Does that port want https:// instead?',
      ],
    }
  }
  return {
    message: `${nextStop(where)} closed the connection (${code}${stage === 'handshake' ? ', in the TLS handshake' : ''})`,
    hints: [stage === 'handshake' ? 'Does that port speak TLS? If not: http://' : 'Is that the right port?'],
  }
}

function tunnel(error: Error, where: FailurePlace): FailureDescription {
  const { statusCode } = error as { statusCode?: unknown }
  const next = nextStop(where)
  if (statusCode === 407) {
    return {
      message: `${next} wants a user name and password (407)`,
      hints: [`Put them into the variable: ${where.proxy?.variable}=http://USER:PASSWORD@HOST:PORT`],
    }
  }
  const status = typeof statusCode === 'number' && Number.isInteger(statusCode) ? ` (${statusCode})` : ''
  return {
    message: `${next} does not let us through to ${where.address.label}${status}`,
    hints: ['Can the proxy reach that server, and may it?'],
  }
}
