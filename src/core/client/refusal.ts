import { Fault, type FaultName, type FieldFault } from '../errors.ts'
import { type Operation, type OperationSpec, operations, type ResponseStatus } from '../protocol/index.ts'
import { sanitizeAndCut } from '../sanitize.ts'
import type { Received } from './exchange.ts'

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
  401: { fault: 'Unauthorized', does: 'wants a caller who is signed in' },
  403: { fault: 'Forbidden', does: 'forbids this' },
  404: { fault: 'NotFound', does: 'does not have this' },
  405: { fault: 'MethodNotAllowed', does: 'does not allow that' },
  407: { fault: 'Unreachable', does: 'cannot be reached: a proxy on the way wants a user name and password' },
  408: { fault: 'RequestTimeout', does: 'gave up waiting for the request' },
  409: { fault: 'Conflict', does: 'sees a conflict' },
  413: { fault: 'TooLarge', does: 'finds the request too large' },
  415: { fault: 'UnsupportedMediaType', does: 'does not read JSON' },
  421: { fault: 'Misdirected', does: 'does not answer for that host name' },
  429: { fault: 'TooManyRequests', does: 'is asked too often' },
  431: { fault: 'HeadersTooLarge', does: 'finds the request headers too large' },
  501: { fault: 'NotImplemented', does: 'does not have this operation' },
  503: { fault: 'Unavailable', does: 'is not available now' },
}
const rejected: Refusal = { fault: 'BadRequest', does: 'rejects the request' }
const notSignedIn: Refusal = { fault: 'Unauthorized', does: 'refuses the sign-in' }
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
    ...(wait === undefined ? [] : [`; it asks to be left alone for ${wait} s (Retry-After)`]),
  ].join('')
  const errorCode = status?.ErrorCode
  const fields = fieldFaults(status)
  return new Fault(fault, message, {
    remoteStatus: code,
    hints: hintsFor(fault, request),
    ...(fields.length > 0 ? { fields } : {}),
    ...(errorCode !== undefined && /^[A-Za-z][\w.]{0,99}$/.test(errorCode) ? { errorCode } : {}),
    ...(wait === undefined ? {} : { retryAfter: wait }),
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
          ? ['ServiceStack itself has none: the service there has to define HealthCheckRequest, as svc serve does.']
          : []),
        `Is the base URL right? ${operations[operation].routes[0].path} is asked under ${server}`,
      ],
    },
  )
}

function hintsFor(fault: FaultName, { operation, server }: SentRequest): readonly string[] {
  switch (fault) {
    case 'Unauthorized':
    case 'Forbidden':
      if (!operation) return fault === 'Unauthorized' ? [`Sign in: svc login --server ${server}`] : []
      if (operation === 'authenticate') return ['Are user name, password and provider right?']
      return operations[operation].caller === 'anyone'
        ? ['A health check needs no sign-in by itself: a gateway or proxy before the server may want one.']
        : [
            `The caller must be signed in and hold ${neededBy(operation)}.`,
            ...(fault === 'Unauthorized' ? [`Sign in: svc login --server ${server}`] : []),
          ]
    case 'Unreachable':
      return ['Name the proxy with its user: HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT']
    case 'Misdirected':
      return [
        `Ask it by a name that it knows, or start it with: svc serve --allowed-host ${URL.parse(server)?.hostname}`,
      ]
    case 'ServerError':
      return ['The log of the server says more; the correlation id of this call stands there too.']
    case 'Unavailable':
    case 'TooManyRequests':
      return ['Ask again later.']
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

const maxFields = 20

const fieldFaults = (status: ResponseStatus | undefined): readonly FieldFault[] =>
  (status?.Errors ?? []).slice(0, maxFields).map((error) => ({
    ErrorCode: sanitizeServerText(error.ErrorCode ?? '', 100),
    FieldName: sanitizeServerText(error.FieldName ?? '', 100),
    Message: sanitizeServerText(error.Message ?? ''),
  }))
