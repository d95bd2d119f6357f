import { Fault } from '../errors.ts'
import { AuthenticateResponse, type Dto, type OperationSpec } from '../protocol/index.ts'
import {
  attachment,
  encodeJson,
  errorAnswer,
  errorResponse,
  formats,
  jsonp,
  jsonpContentType,
  type Negotiated,
} from '../wire/index.ts'
import type { HttpAnswer } from './answer.ts'
import type { RequestContext, ServerContext } from './context.ts'
import { stackOf } from './log.ts'

/** Seconds after which a refused caller may try again, where the fault does not say. */
const retryAfter = 5

/** Faults of the server that a caller may be told; any other speaks of this machine's insides (S6). */
const tellable = new Set(['NotImplemented', 'Unavailable', 'Timeout'])

export type FaultStyle = {
  readonly negotiated: Negotiated
  /** The answer that the operation would have given, where one was found. */
  readonly response: Dto | undefined
  /** For the Meta of the ResponseStatus. */
  readonly meta?: Readonly<Record<string, string>> | undefined
}
/** Where it is not known yet what was asked for. */
export const plainJson = ({ options: { names } }: Pick<ServerContext, 'options'>): FaultStyle => ({
  negotiated: { format: 'json', names },
  response: undefined,
})

/** Whatever was thrown, as an answer. The details of a defect go to the log alone, with the stack. */
export async function faultAnswer(
  server: ServerContext,
  context: RequestContext,
  thrown: unknown,
  style: FaultStyle,
): Promise<HttpAnswer> {
  const fault = judged(thrown)
  if (fault.fault === 'Defect') context.logFields.stack = stackOf(thrown)
  const stackTrace = server.options.debug && fault.fault === 'Defect' ? context.logFields.stack : undefined
  const error = errorResponse(fault, context.correlationId, stackTrace, style.meta)
  const { schema, value } = errorAnswer(style.response, error)
  return {
    status: fault.status,
    ...(await encoded(schema, value, style.negotiated)),
    headers: [...headersOf(fault), ...challenge(server, fault, style)],
  }
}

function judged(thrown: unknown): Fault {
  if (!(thrown instanceof Fault)) return new Fault('Defect')
  if (thrown.status < 500 || tellable.has(thrown.fault)) return thrown
  return new Fault('Defect')
}

/**
 * Where HTTP Basic is turned on, clients that send it only when asked are asked. A sign-in is not: its own 401 is the
 * answer, and a browser's window would only get in its way (A3).
 */
function challenge({ options }: ServerContext, { fault }: Fault, { response }: FaultStyle): readonly string[] {
  if (!options.basic || fault !== 'Unauthorized' || response?.name === AuthenticateResponse.name) return []
  return ['WWW-Authenticate', 'Basic realm="svc", charset="UTF-8"']
}

function headersOf(fault: Fault): readonly string[] {
  const { details, status } = fault
  const headers = Object.entries(details.headers ?? {}).flat()
  const waits = details.retryAfter ?? (status === 503 || status === 429 ? retryAfter : undefined)
  return waits === undefined ? headers : [...headers, 'Retry-After', String(Math.ceil(waits))]
}

type Encoded = { readonly contentType: string; readonly body: string }

/** A DTO in the negotiated format. */
export async function encoded(schema: Dto, value: unknown, negotiated: Negotiated): Promise<Encoded> {
  if (negotiated.format === 'json') return spoken(encodeJson(schema, value, undefined, negotiated.names), negotiated)
  const { contentType, encode } = await formats[negotiated.format]()
  return { contentType, body: encode(schema, value) }
}

/** JSON, wrapped into the callback where one was asked for (F2). */
export function spoken(json: string, { callback }: Negotiated): Encoded {
  return callback === undefined
    ? { contentType: 'application/json; charset=utf-8', body: json }
    : { contentType: jsonpContentType, body: jsonp(callback, json) }
}

/** An operation's answer in the negotiated format, with further headers, flat. A CSV is a file to keep (F3). */
export async function dtoAnswer(
  row: OperationSpec,
  response: unknown,
  negotiated: Negotiated,
  headers: readonly string[] = [],
): Promise<HttpAnswer> {
  const file = negotiated.format === 'csv' ? ['Content-Disposition', attachment(row.name)] : []
  return { status: 200, ...(await encoded(row.response, response, negotiated)), headers: [...file, ...headers] }
}
