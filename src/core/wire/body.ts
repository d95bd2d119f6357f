import { Fault } from '../errors.ts'
import { type Dto, maxBatch } from '../protocol/index.ts'
import type { WireValues } from './format.ts'
import { bindJson, decodeJson, parseJson } from './json.ts'
import { withinLimits } from './limits.ts'
import { type HeaderValue, parseHeaderValue } from './negotiate.ts'
import { badRequest, refusedField, undeserialisable } from './problems.ts'
import { bind, parsePairs } from './query.ts'

/** What a body gave; forms rank above the query, other bodies below the path (N7): hand both to `merge`. */
export type BodyValues = { readonly body?: WireValues; readonly form?: WireValues }

/** Readers of bodies other than JSON and forms: how to load each. Most callers speak JSON and pay for none of them. */
export const bodyReaders = {
  csv: async () => (await import('./csv.ts')).csv.decode,
  multipart: async () => (await import('./multipart.ts')).readMultipart,
} as const

export type BodyRules = {
  /** N8: on the routes a `text/plain` body is ignored, under `/api` and `/json/reply` it is JSON. */
  readonly plainText: 'ignored' | 'json'
}

/**
 * A request's body as values of `schema`, within the bounds of S4. No bytes are an empty request whatever their type
 * (N8). Throws `Fault`: Unreadable or BadRequest (400) naming the fields, UnsupportedMediaType (415).
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
      const decodeCsv = await bodyReaders.csv()
      return { body: withinLimits(schema, decodeCsv(schema, text(schema, 'text/csv', bytes))) }
    }
    case 'application/x-www-form-urlencoded':
      return { form: bind(schema, parsePairs(text(schema, 'application/x-www-form-urlencoded', bytes))) }
    case 'multipart/form-data': {
      const readMultipart = await bodyReaders.multipart()
      return { form: bind(schema, readMultipart(bytes, media?.parameters.get('boundary'))) }
    }
    default:
      throw new Fault(
        'UnsupportedMediaType',
        'The body must be application/json, text/csv, application/x-www-form-urlencoded or multipart/form-data, in UTF-8',
      )
  }
}

/**
 * A batch (R3): a JSON array of requests, each read only when its turn comes, because what came before it is done even
 * if it is faulty. Whatever calls itself JSON or plain text is JSON here, as under `/api`; no bytes are no requests.
 */
export const readBatch = (
  schema: Dto,
  contentType: string | undefined,
  bytes: Uint8Array,
): readonly (() => WireValues)[] => {
  if (bytes.length === 0) return []
  const media = parseHeaderValue(contentType ?? 'text/plain')
  if (!media || !isUtf8(media) || !batchTypes.has(media.value)) {
    throw new Fault('UnsupportedMediaType', 'A batch must be a JSON array: application/json, in UTF-8')
  }
  const requests = parseJson(schema, text(schema, 'application/json', bytes))
  if (!Array.isArray(requests)) throw undeserialisable(schema, 'application/json', 'an array is expected')
  if (requests.length > maxBatch) {
    throw badRequest([refusedField(schema.name, `A batch may have at most ${maxBatch} requests`)])
  }
  return requests.map((request) => () => withinLimits(schema, bindJson(schema, request)))
}

const batchTypes: ReadonlySet<string> = new Set(['application/json', 'text/json', 'text/plain'])

const isUtf8 = ({ parameters }: HeaderValue): boolean =>
  ['utf-8', 'utf8', 'us-ascii'].includes(parameters.get('charset')?.toLowerCase() ?? 'utf-8')

/** A byte-order mark is dropped. */
const utf8 = new TextDecoder('utf-8', { fatal: true })

const text = (schema: Dto, contentType: string, bytes: Uint8Array): string => {
  try {
    return utf8.decode(bytes)
  } catch {
    throw undeserialisable(schema, contentType, 'the body is not valid UTF-8')
  }
}
