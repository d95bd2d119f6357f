import { type Field, longestBatch, type OperationSpec, schemaOf } from '../protocol/index.ts'
import { components } from './components.ts'
import { type Described, interfaceTitle, interfaceVersion } from './described.ts'
import { parameterSchema } from './json-schema.ts'
import { type Json, pointTo } from './open-json.ts'
import { essence, operationId, type Place, places } from './places.ts'
import { pageRefusals, refusalName } from './refusals.ts'
import { common, parameters, requestBody } from './requests.ts'
import { batchResponses, options, responses, withoutBody } from './responses.ts'
import { security } from './security.ts'
import { callerOf, parametersOf } from './shapes.ts'

/** The interface as OpenAPI 3.1: every path, verb, parameter, body and answer, read off the table of operations. */
export function openapi(described: Described): Json {
  return {
    openapi: '3.1.1',
    info: {
      title: interfaceTitle,
      version: interfaceVersion,
      description,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    servers: [{ url: described.base }],
    tags: [
      { name: 'Interface', description: 'The operations, at their own paths' },
      { name: 'By name', description: 'The same operations, at paths named after the request' },
      { name: 'Batches', description: `Up to ${longestBatch} requests of one kind at once` },
      { name: 'Server', description: 'What the server says of itself' },
    ],
    paths: {
      ...Object.fromEntries(places().map((place) => [place.path, pathItem(place, described)])),
      ...Object.fromEntries(described.pages.flatMap((page) => page.paths.map((path) => [path, pageItem(path, page)]))),
    },
    components: components(described),
    security: security(described),
  }
}

const description = [
  'Property names and enumerated values are matched in any letter case; values of an enumeration may be given by number,',
  'counted from 1; unknown properties are ignored. Letter case, a trailing slash and doubled slashes in a path do not',
  'matter. Fields may stand in the body, the path, the query or a form; of one field given in several places the body',
  'counts least, then path, query and form. The format is chosen by a suffix of the path, `?format=`, or Accept, in this',
  'order, and is JSON where nothing else is. Dates are written `/Date(<UTC milliseconds>-0000)/`, durations as in',
  'ISO 8601. Fields without a value are left out. HEAD is answered wherever GET is, and changes nothing.',
].join(' ')

const tags = { route: 'Interface', reply: 'By name', batch: 'Batches' } as const

function pathItem(place: Place, described: Described): Json {
  const verbs = [...new Set([...place.verbs, 'OPTIONS'])].map((verb) => verb.toLowerCase())
  const given = parametersOf(place.path).map((name) => ({
    name,
    in: 'path',
    required: true,
    schema: parameterSchema(schemaOf(fieldNamed(place.row, name))),
  }))
  return {
    parameters: [...given, ...common],
    ...Object.fromEntries(
      verbs.map((verb) => [
        verb,
        verb === 'options' ? options(place.path, tags[place.kind]) : operation(place, verb, described),
      ]),
    ),
    ...(verbs.includes('get') ? { head: withoutBody(operation(place, 'get', described), place.path) } : {}),
  }
}

function fieldNamed({ request }: OperationSpec, name: string): Field {
  const field = request.fields[name]
  if (field === undefined) throw new Error(`${request.name} has no field ${name}, which a path of it gives`)
  return field
}

function operation(place: Place, verb: string, described: Described): Json {
  const { row, kind } = place
  return {
    operationId: operationId(verb, place.path),
    summary: row.summary,
    description: `${callerOf(row)} may call it.`,
    tags: [tags[kind]],
    parameters: parameters(place, verb, described),
    ...(verb === 'post' ? { requestBody: requestBody(place, described) } : {}),
    responses: kind === 'batch' ? batchResponses(place) : responses(place, verb, described),
    ...(row.caller === 'anyone' ? {} : { security: security(described, row) }),
  }
}

function pageItem(path: string, { summary, contentType }: Described['pages'][number]): Json {
  const name = path === '/' ? '/statusPage' : path
  const json = essence(contentType) === 'application/json'
  const get: Json = {
    operationId: operationId('get', name),
    summary,
    tags: ['Server'],
    responses: {
      200: {
        description: 'Here it is',
        headers: { 'X-Correlation-Id': pointTo('headers', 'CorrelationId') },
        content: { [essence(contentType)]: { schema: json ? { type: 'object' } : { type: 'string' } } },
      },
      ...Object.fromEntries(
        [...pageRefusals, 'default' as const].map((status) => [
          status,
          pointTo('responses', refusalName('ErrorResponse', status)),
        ]),
      ),
    },
  }
  return {
    parameters: common,
    get,
    head: withoutBody(get, name),
    options: options(name, 'Server'),
  }
}
