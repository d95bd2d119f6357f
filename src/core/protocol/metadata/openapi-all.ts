import { maxBatch } from '../index.ts'
import { frame, headers, parameters, schemas, security, securitySchemes } from './components.ts'
import {
  common,
  essence,
  operationId,
  parametersAt,
  pathId,
  pathParametersOf,
  places,
  type RequestPlace,
  requestBody,
} from './requests.ts'
import {
  batchResponses,
  inFormats,
  options,
  pageRefusals,
  refusalName,
  refusalResponses,
  responses,
  withoutBody,
} from './responses.ts'
import { callerOf, type Described, type DescribedPage, type Json, parametersOf, pointTo, refTo } from './schemas.ts'

/**
 * Everything that the server answers, as OpenAPI 3.1: every path, verb, parameter, body and media type, and the
 * server's own pages. An operation at any place but its canonical one is marked with `x-svc-alias-of`.
 */
export function openapiAll(described: Described): Json {
  return {
    ...frame(description),
    tags: [
      { name: 'Interface', description: 'The operations, at their own paths' },
      { name: 'By name', description: 'The same operations, at paths named after the request' },
      { name: 'Batches', description: `Up to ${maxBatch} requests of one kind at once` },
      { name: 'Server', description: 'Pages about the server itself' },
    ],
    paths: {
      ...Object.fromEntries(places().map((place) => [place.path, pathItem(place, described)])),
      ...Object.fromEntries(described.pages.flatMap((page) => page.paths.map((path) => [path, pageItem(path, page)]))),
    },
    components: {
      schemas: schemas(described),
      responses: { ...refusalResponses(described), NoBody: { description: 'As for GET, without a body' } },
      parameters,
      headers,
      securitySchemes: securitySchemes(described),
    },
    security: security(described),
  }
}

const description = [
  'Every path, verb and format. Generate clients from /openapi.json instead, which has each operation once.',
  'Property names and enumeration values match in any letter case. Enumeration values can also be sent as numbers, counted',
  'from 1. Unknown properties are ignored. Letter case, a trailing slash and doubled slashes in a path do not matter.',
  'Fields can be sent in the body, the path, the query or a form. If a field occurs in several of them, the form takes',
  'precedence, then the query, the path and the body; names and Meta must not differ. A path suffix, `?format=` or Accept',
  'selects the format, in this order; the default is JSON. Dates are written as `/Date(<UTC milliseconds>-0000)/`,',
  'durations as in ISO 8601. Fields without a value are omitted. HEAD works wherever GET does, and changes nothing.',
].join(' ')

const tags = { route: 'Interface', reply: 'By name', batch: 'Batches' } as const

function pathItem(place: RequestPlace, described: Described): Json {
  const verbs = [...new Set([...place.verbs, 'OPTIONS'])].map((verb) => verb.toLowerCase())
  return {
    parameters: [...pathParametersOf(place), ...common],
    ...Object.fromEntries(
      verbs.map((verb) => [
        verb,
        verb === 'options' ? options(place.path, tags[place.kind]) : operation(place, verb, described),
      ]),
    ),
    ...(verbs.includes('get')
      ? { head: { ...withoutBody(operation(place, 'get', described), place.path), 'x-svc-alias-of': place.row.name } }
      : {}),
  }
}

function operation(place: RequestPlace, verb: string, described: Described): Json {
  const { row, kind } = place
  const id = operationId(place, verb)
  return {
    operationId: id,
    ...(id === row.name ? {} : { 'x-svc-alias-of': row.name }),
    summary: row.summary,
    description: `${callerOf(row)} may call it.`,
    tags: [tags[kind]],
    parameters: parametersAt(place, verb, described),
    ...(verb === 'post' ? { requestBody: requestBody(place, described) } : {}),
    responses: kind === 'batch' ? batchResponses(place) : responses(place, verb, described),
    ...(row.caller === 'anyone' ? {} : { security: security(described, row) }),
  }
}

function pageItem(path: string, { summary, contentType, post }: Described['pages'][number]): Json {
  const name = path === '/' ? '/statusPage' : path
  const type = essence(contentType)
  // What a parameter in the path names may not exist.
  const refusals = [...pageRefusals, ...(parametersOf(path).length > 0 ? [404] : []), 'default' as const]
  const get: Json = {
    operationId: pathId('get', name),
    summary,
    tags: ['Server'],
    responses: {
      200: {
        description: 'The page',
        headers: correlated,
        content: { [type]: { schema: { type: type === 'application/json' ? 'object' : 'string' } } },
      },
      ...Object.fromEntries(
        refusals.map((status) => [
          status,
          type === 'text/html' ? refusedPage : pointTo('responses', refusalName('ErrorResponse', status)),
        ]),
      ),
    },
  }
  return {
    parameters: [...parametersOf(path).map(textParameter), ...common],
    get,
    ...(post ? { post: formPost(name, post) } : {}),
    head: withoutBody(get, name),
    options: options(name, 'Server'),
  }
}

/** A parameter in the path of a page. */
const textParameter = (name: string): Json => ({
  name,
  in: 'path',
  required: true,
  schema: { type: 'string', minLength: 1 },
})

/** The statuses with which a form of a page is refused. */
const formRefusals = [...new Set([...pageRefusals, 401, 403, 404, 409, 413, 415, 429, 501])].toSorted((a, b) => a - b)

const correlated = { 'X-Correlation-Id': pointTo('headers', 'CorrelationId') }

/** The refusal of a page for people is a page, too; those of the server itself are JSON. */
const refusedPage: Json = {
  description: 'The page, which says why; or a refusal of the server itself',
  headers: correlated,
  content: { 'text/html': { schema: { type: 'string' } }, ...inFormats(refTo('ErrorResponse'), ['json']) },
}

/** A POST of a form of a page. */
function formPost(name: string, { summary, form }: NonNullable<DescribedPage['post']>): Json {
  return {
    operationId: pathId('post', name),
    summary,
    tags: ['Server'],
    ...(form && {
      requestBody: { required: true, content: { 'application/x-www-form-urlencoded': { schema: refTo(form.name) } } },
    }),
    responses: {
      303: {
        description: 'The page is at Location',
        headers: { ...correlated, Location: { schema: { type: 'string' } } },
      },
      ...Object.fromEntries([...formRefusals, 'default' as const].map((status) => [status, refusedPage])),
    },
  }
}
