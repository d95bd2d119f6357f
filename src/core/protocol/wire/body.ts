import { Fault } from '../../base/errors.ts'
import { type Dto, maxBatch } from '../index.ts'
import type { WireValues } from './format.ts'
import { bindJson, decodeJson, parseJson } from './json.ts'
import { decodeJsv, jsvRequests } from './jsv.ts'
import { withinLimits } from './limits.ts'
import { type HeaderValue, parseHeaderValue } from './negotiate.ts'
import { badRequest, refusedField, undeserialisable } from './problems.ts'
import { bind, parsePairs } from './query.ts'

/** The values of a body, for `merge`. Forms take precedence over the query; other bodies rank below the path (N7). */
export type BodyValues = { readonly body?: WireValues; readonly form?: WireValues }

/** Loaders for body readers other than JSON and urlencoded forms, so that most requests load none of them. */
export const bodyReaders = {
  csv: async () => await import('./csv.ts'),
  multipart: async () => (await import('./multipart.ts')).readMultipart,
} as const

export type BodyRules = {
  /** On the interface's routes a `text/plain` body is ignored; under `/api` and `/json/reply` it is JSON (N8). */
  readonly plainText: 'ignored' | 'json'
}

/**
 * Reads a request body as values of `schema`, within the limits (S4). An empty body is an empty request, whatever its
 * type (N8). Throws `Fault`: Unreadable or BadRequest (400) that names the fields, UnsupportedMediaType (415).
 */
export const readBody = async (
  schema: Dto,
  contentType: string | undefined,
  bytes: Uint8Array,
  rules: BodyRules = { plainText: 'ignored' },
): Promise<BodyValues> => {
  if (bytes.length === 0) return {}
  const media = parseHeaderValue(contentType ?? 'text/plain')
  switch (media && isUtf8(media) ? media.value : undefined) {
    case 'application/json':
    case 'text/json':
      return { body: withinLimits(schema, decodeJson(schema, text(schema, 'application/json', bytes))) }
    case 'text/plain':
      if (rules.plainText === 'ignored') return {}
      return { body: withinLimits(schema, decodeJson(schema, text(schema, 'application/json', bytes))) }
    case 'text/csv': {
      const { csv } = await bodyReaders.csv()
      return { body: withinLimits(schema, csv.decode(schema, text(schema, 'text/csv', bytes))) }
    }
    case 'application/jsv':
    case 'text/jsv':
      return { body: withinLimits(schema, decodeJsv(schema, text(schema, 'application/jsv', bytes))) }
    case 'application/x-www-form-urlencoded':
      return { form: bind(schema, parsePairs(text(schema, 'application/x-www-form-urlencoded', bytes))) }
    case 'multipart/form-data': {
      const readMultipart = await bodyReaders.multipart()
      return { form: bind(schema, readMultipart(bytes, media?.parameters.get('boundary'))) }
    }
    default:
      throw new Fault(
        'UnsupportedMediaType',
        `The body must be ${structured}, application/x-www-form-urlencoded or multipart/form-data, in UTF-8`,
      )
  }
}

const structured = 'application/json, application/jsv, text/csv'

/**
 * Reads a batch: a JSON array, a JSV list, or a CSV table with a row for each request (R3). Each request is read only
 * when its turn comes, because requests before a faulty one are executed. JSON and plain text types both mean JSON here,
 * as under `/api`. An empty body is an empty batch.
 */
export const readBatch = async (
  schema: Dto,
  contentType: string | undefined,
  bytes: Uint8Array,
): Promise<readonly (() => WireValues)[]> => {
  if (bytes.length === 0) return []
  const media = parseHeaderValue(contentType ?? 'text/plain')
  const requests = (await batchReader(media && isUtf8(media) ? media.value : undefined))(schema, bytes)
  if (requests.length > maxBatch) {
    throw badRequest([refusedField(schema.name, `A batch may have at most ${maxBatch} requests`)])
  }
  return requests.map((read) => () => withinLimits(schema, read()))
}

type BatchReader = (schema: Dto, bytes: Uint8Array) => readonly (() => WireValues)[]

const batchReader = async (mediaType: string | undefined): Promise<BatchReader> => {
  switch (mediaType) {
    case 'application/json':
    case 'text/json':
    case 'text/plain':
      return jsonRequests
    case 'application/jsv':
    case 'text/jsv':
      return (schema, bytes) => jsvRequests(schema, text(schema, 'application/jsv', bytes))
    case 'text/csv': {
      const { csvRequests } = await bodyReaders.csv()
      return (schema, bytes) => csvRequests(schema, text(schema, 'text/csv', bytes), maxBatch)
    }
    default:
      throw new Fault('UnsupportedMediaType', `A batch must be ${structured.replace(', text', ' or text')}, in UTF-8`)
  }
}

const jsonRequests: BatchReader = (schema, bytes) => {
  const requests = parseJson(schema, text(schema, 'application/json', bytes))
  if (!Array.isArray(requests)) throw undeserialisable(schema, 'application/json', 'an array is expected')
  return requests.map((request) => () => bindJson(schema, request))
}

const isUtf8 = ({ parameters }: HeaderValue): boolean =>
  ['utf-8', 'utf8', 'us-ascii'].includes(parameters.get('charset')?.toLowerCase() ?? 'utf-8')

/** Drops a byte-order mark. */
const utf8 = new TextDecoder('utf-8', { fatal: true })

const text = (schema: Dto, contentType: string, bytes: Uint8Array): string => {
  try {
    return utf8.decode(bytes)
  } catch {
    throw undeserialisable(schema, contentType, 'the body is not valid UTF-8')
  }
}
