import { Fault, type FieldFault } from '../../base/errors.ts'
import { isObject, tooDeepUnder } from '../../base/json.ts'
import {
  type Dto,
  ErrorResponse,
  limits,
  listsRoles,
  maxRemedyLines,
  type ResponseStatus,
  remedyKey,
} from '../index.ts'
import { memberNamed } from './fields.ts'
import type { Trailing, WireValues } from './format.ts'
import { parseJsonText, type Rules, walkDto } from './json-read.ts'
import { readScalar } from './scalars.ts'

const lenient: Rules = {
  unset: (schema, json) => json === null || json === undefined || (json === '' && schema.kind !== 'text'),
  skipsUnsetItems: true,
  memberName: (schema, written) =>
    written.includes('_') && !memberNamed(schema, written) ? written.replaceAll('_', '') : written,
  scalar: (schema, json) => {
    if (schema.kind === 'text' && typeof json === 'string') return json
    if (schema.kind === 'date' && typeof json === 'number') return readScalar(schema, `/Date(${json})/`)
    const simple = typeof json === 'string' || typeof json === 'number' || typeof json === 'boolean'
    return simple ? readScalar(schema, String(json)) : undefined
  },
}

const unreadable = (message: string): Fault => new Fault('UnreadableAnswer', message)

/**
 * Reads the answer of a real server, old or new (C3): names in any case and style, dates in any form, numbers as text,
 * extra properties ignored. Throws `Fault` UnreadableAnswer when it is not a JSON object or a field cannot be
 * understood: an unknown Status must not pass as a good one. No fault quotes text of the body.
 */
export const decodeAnswer = (schema: Dto, body: string): WireValues => {
  const text = body.startsWith('\ufeff') ? body.slice(1) : body
  if (tooDeepUnder(text, limits.depth) !== undefined)
    throw unreadable('The server returned JSON that is nested too deeply')
  const json = parse(text)
  if (!isObject(json)) throw unreadable('The server returned something that is not a JSON object')
  const problems: FieldFault[] = []
  const values = walkDto(schema, json, lenient, problems)
  const [first] = problems
  if (first) throw unreadable(`The server's answer cannot be understood: ${first.Message}`)
  return values
}

const parse = (text: string): unknown => {
  try {
    return parseJsonText(text)
  } catch {
    // Without a cause: the parser's message quotes the body, which may hold a token.
    return parseWithoutNaN(text)
  }
}

/**
 * A string, or one of the bare words that .NET writes for numbers that JSON cannot express. An unterminated string
 * extends to the end of the text; otherwise each of its quotes would start another search for an end.
 */
const stringOrBareNumber = /"[^"\\]*(?:\\[\s\S][^"\\]*)*"?|-?\b(?:NaN|Infinity)\b/g

const parseWithoutNaN = (text: string): unknown => {
  try {
    return parseJsonText(text.replace(stringOrBareNumber, (match) => (match.startsWith('"') ? match : 'null')))
  } catch {
    throw unreadable('The server returned something that is not JSON')
  }
}

const firstServerError = 500

/**
 * The body of every error; `Errors` is always present (E1). Only server faults carry a correlation id: every refused
 * sign-in must be identical byte for byte (A3). `stackTrace` is set in debug mode only; the transport adds `more` to
 * the Meta.
 */
export const errorResponse = (
  fault: Fault,
  correlationId?: string,
  stackTrace?: string,
  more: Readonly<Record<string, string>> = {},
): ErrorResponse => {
  const remedy = remedyOf(fault)
  const meta = {
    ...fault.details.meta,
    ...(remedy === '' ? {} : { [remedyKey]: remedy }),
    ...more,
    ...(correlationId !== undefined && fault.status >= firstServerError ? { CorrelationId: correlationId } : {}),
  }
  const status: ResponseStatus = {
    ErrorCode: fault.errorCode,
    Message: fault.message,
    ...(stackTrace === undefined ? {} : { StackTrace: stackTrace }),
    Errors: fault.details.fields ?? [],
    ...(Object.keys(meta).length === 0 ? {} : { Meta: meta }),
  }
  return { ResponseStatus: status }
}

/**
 * The remedy for the caller. Empty where only somebody on the machine of the server can do anything, whose places are not for
 * callers (S6), and for refused sign-ins, which must not differ (A3).
 */
const remedyOf = ({ fault, status, details: { hints = [] } }: Fault): string =>
  fault === 'Unauthorized' || (status >= firstServerError && fault !== 'NotImplemented')
    ? ''
    : hints.slice(0, maxRemedyLines).join('\n')

/**
 * The error of an operation, ready to encode. Operations whose answers list roles add empty lists beside the
 * ResponseStatus (O7).
 */
export const errorAnswer = (response: Dto | undefined, error: ErrorResponse): Trailing =>
  response && listsRoles(response)
    ? { schema: response, value: { AllRoles: [], AllPermissions: [], ...error } }
    : { schema: ErrorResponse, value: error }
