import type { IncomingHttpHeaders } from 'node:http'
import { Fault } from '../base/errors.ts'
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
  type Trailing,
} from '../protocol/wire/index.ts'
import type { HttpAnswer, SharedText } from './answer.ts'
import type { RequestContext, ServerContext } from './context.ts'
import { stackOf } from './log.ts'
import { markedFault } from './rehearsal.ts'

/** The default Retry-After in seconds, for faults that do not set their own. */
const retryAfter = 5

/** Server faults whose message callers may see. All others would reveal internals of this machine (S6). */
const tellable = new Set(['NotImplemented', 'Unavailable', 'Timeout'])

export type FaultStyle = {
  readonly negotiated: Negotiated
  /** The response DTO of the operation, if one was found. */
  readonly response: Dto | undefined
  /** The Meta of the ResponseStatus. */
  readonly meta?: Readonly<Record<string, string>> | undefined
}
/** The style before negotiation. */
export const plainJson = ({ options: { names } }: Pick<ServerContext, 'options'>): FaultStyle => ({
  negotiated: { format: 'json', names },
  response: undefined,
})

/** Turns a thrown value into an answer. The details of a defect, including its stack, go to the log only. */
export async function faultAnswer(
  server: ServerContext,
  context: RequestContext,
  thrown: unknown,
  style: FaultStyle,
): Promise<HttpAnswer> {
  const fault = markedFault(server, visibleFault(thrown))
  if (fault.fault === 'Defect') context.logFields.stack = stackOf(thrown)
  const stackTrace = server.options.debug && fault.fault === 'Defect' ? context.logFields.stack : undefined
  const error = errorResponse(fault, context.correlationId, stackTrace, style.meta)
  const { schema, value } = errorAnswer(style.response, error)
  return {
    status: fault.status,
    ...(await encoded(schema, value, style.negotiated)),
    headers: [...headersOf(fault), ...(await challenges(server, context, fault, style))],
  }
}

/** The fault as callers may see it: a defect, or one that would reveal internals of this machine, has no detail. */
export function visibleFault(thrown: unknown): Fault {
  if (!(thrown instanceof Fault)) return new Fault('Defect')
  if (thrown.status < 500 || tellable.has(thrown.fault)) return thrown
  return new Fault('Defect')
}

/**
 * Where HTTP Basic or Digest is enabled, refusals carry challenges for clients that send credentials only on demand, the
 * strongest first. Sign-ins by password do not: their 401 is the answer itself, and a browser's password dialog would get
 * in the way (A3). Neither do answers to scripts in a browser, which would wait for that dialog (A9). A flat list.
 */
async function challenges(
  { options, runtime }: ServerContext,
  { request: { headers } }: RequestContext,
  { fault, details }: Fault,
  { response }: FaultStyle,
): Promise<readonly string[]> {
  if (fault !== 'Unauthorized' || isFromScript(headers)) return []
  const signsIn = response?.name === AuthenticateResponse.name
  const byDigest = details.challenge !== undefined || !signsIn
  // If the store does not answer, the refusal stands without a challenge.
  const digest = byDigest ? await runtime.digestChallenges?.(details.challenge === 'stale').catch(() => []) : undefined
  const basic = options.basic && !signsIn ? ['Basic realm="svc", charset="UTF-8"'] : []
  return [...(digest ?? []), ...basic].flatMap((one) => ['WWW-Authenticate', one])
}

function isFromScript(headers: IncomingHttpHeaders): boolean {
  const { 'sec-fetch-mode': mode = 'navigate' } = headers
  return mode !== 'navigate' || headers.origin !== undefined || headers['x-requested-with'] !== undefined
}

/** The headers of a fault as a flat list, with the time of the next attempt where there is one (E2). */
export function headersOf(fault: Fault): readonly string[] {
  const { details, status } = fault
  const headers = Object.entries(details.headers ?? {}).flat()
  const waits = details.retryAfter ?? (status === 503 || status === 429 ? retryAfter : undefined)
  return waits === undefined ? headers : [...headers, 'Retry-After', String(Math.ceil(waits))]
}

type Encoded = { readonly contentType: string; readonly body: string }

/** A DTO in the negotiated format. */
export async function encoded(
  schema: Dto,
  value: unknown,
  negotiated: Negotiated,
  trailing?: Trailing,
): Promise<Encoded> {
  if (negotiated.format === 'json')
    return encodedJson(encodeJson(schema, value, trailing, negotiated.names), negotiated)
  const { contentType, encode } = await formats[negotiated.format]()
  return { contentType, body: encode(schema, value, trailing) }
}

/** JSON, wrapped in the callback if there is one (F2). */
export function encodedJson<Text extends string | SharedText>(json: Text, { callback }: Negotiated) {
  return callback === undefined
    ? { contentType: 'application/json; charset=utf-8', body: json }
    : { contentType: jsonpContentType, body: jsonp(callback, String(json)) }
}

/** CSV is sent as a download (F3). A flat list of headers. */
export const downloadHeaders = ({ name }: Pick<OperationSpec, 'name'>, { format }: Negotiated): readonly string[] =>
  format === 'csv' ? ['Content-Disposition', attachment(name)] : []

/** An operation's answer in the negotiated format, with extra headers as a flat list. */
export async function dtoAnswer(
  row: OperationSpec,
  response: unknown,
  negotiated: Negotiated,
  headers: readonly string[] = [],
): Promise<HttpAnswer> {
  const answer = await encoded(row.response, response, negotiated)
  return { status: 200, ...answer, headers: [...downloadHeaders(row, negotiated), ...headers] }
}
