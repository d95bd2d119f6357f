import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { openapi, openapiAll } from '../../../src/core/protocol/metadata/index.ts'
import { describedAt } from '../../../src/core/server/documents.ts'

type Json = { readonly [key: string]: unknown }
type Media = { readonly schema: Json }
type Response = { readonly $ref?: string; readonly content?: Readonly<Record<string, Media>> }
export type Operation = Json & {
  readonly operationId: string
  readonly parameters?: readonly Json[]
  readonly responses: Readonly<Record<string, Response>>
}
export type Document = Json & {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Json>>
    readonly responses: Readonly<Record<string, Response>>
  } & Json
}

/**
 * The descriptions of a server with these options: at /openapi-all.json everything that it answers, at /openapi.json
 * each operation once.
 */
export async function describedBy(label: Parameters<typeof describedAt>[1], write = openapiAll) {
  const document = write(await describedAt('http://localhost', label)) as Document
  const ajv = new Ajv2020({
    allErrors: true,
    strict: true,
    strictRequired: false,
    strictTypes: false,
    allowUnionTypes: true,
  })
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    ajv.addSchema({ ...(closed(schema) as Json), $id: `svc:${name}` })
  }
  const compiled = new Map<string, ValidateFunction>()
  const paths = Object.keys(document.paths)
  const byPlain = new Map(paths.toReversed().map((path) => [path.toLowerCase(), path]))
  // Of paths that fit, the longest: /auth/{provider}.csv before /auth/{provider}.
  const patterns = paths
    .filter((path) => path.includes('{'))
    .toSorted((a, b) => b.length - a.length)
    .map((path) => ({ path, pattern: patternOf(path) }))
  return { document, valid, responseTo, operationAt }

  /**
   * Throws an Error that says what is wrong, unless /openapi.json describes this answer: the path, the verb, the status,
   * the media type, and the body, which may hold nothing that is not described. What no path describes must be refused.
   */
  function valid(method: string, target: string, status: number, contentType: string | undefined, body: string): void {
    const label = `${method} ${target} ${status} ${contentType ?? 'without a type'}`
    const failure = (what: string): Error => new Error(`${label}: ${what}: ${body.slice(0, 500)}`)
    const response = responseTo(method, target, status)
    if (response === undefined) throw failure('no such status is described')
    const { content } = response
    if (method === 'HEAD' || content === undefined) {
      if (body !== '') throw failure('no body is described')
      return
    }
    const type = contentType?.split(';', 1)[0]?.trim() ?? ''
    const media = content[type]
    if (media === undefined) throw failure(`of the media types ${Object.keys(content).join(', ')} it is none`)
    // A callback's argument is the JSON.
    const called = type === 'text/javascript' ? /^[\w$.]+\((.*)\)$/s.exec(body)?.[1] : undefined
    if (type === 'text/javascript' && called === undefined) throw failure('it is not a call')
    const schema = called === undefined ? media.schema : content['application/json']?.schema
    if (schema === undefined) throw failure('no JSON is described')
    const problem = problemIn(schema, called ?? (type.endsWith('json') ? body : JSON.stringify(body)))
    if (problem !== undefined) throw failure(problem)
  }

  function problemIn(schema: Json, json: string): string | undefined {
    const key = JSON.stringify(schema)
    const check = compiled.get(key) ?? ajv.compile(closed(schema) as Json)
    compiled.set(key, check)
    let value: unknown
    try {
      value = JSON.parse(json)
    } catch {
      return 'it is not JSON'
    }
    return check(value) ? undefined : ajv.errorsText(check.errors, { separator: '; ' })
  }

  /** The description of an answer in the document; undefined without one. */
  function responseTo(method: string, target: string, status: number): Response | undefined {
    const described = operationAt(method, target)
    const response = described ? (described.responses[status] ?? atLarge(described, status)) : refused(status)
    return response?.$ref === undefined
      ? response
      : document.components.responses[response.$ref.split('/').at(-1) ?? '']
  }

  function operationAt(method: string, target: string): Operation | undefined {
    const path = plain(target.split('?', 1)[0] ?? '')
    const matches = byPlain.get(path) ?? patterns.find(({ pattern }) => pattern.test(path))?.path
    return matches === undefined
      ? undefined
      : (document.paths[matches]?.[method.toLowerCase()] as Operation | undefined)
  }
}

/** A schema under which an object may hold nothing that is not described, its references as ajv knows them. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const entries = Object.entries(schema).map(([key, value]) => [
    key,
    key === '$ref' ? String(value).replace('#/components/schemas/', 'svc:') : closed(value),
  ])
  const made = Object.fromEntries(entries) as Json
  const isObject = made.type === 'object' && typeof made.properties === 'object'
  return isObject ? { ...made, additionalProperties: false } : made
}

/** Where no refusal is described by itself, `default` is all of them; elsewhere a status that is not there is a defect. */
const atLarge = ({ responses }: Operation, status: number): Response | undefined =>
  status >= 400 && Object.keys(responses).every((existing) => !/^[45]/.test(existing))
    ? responses['default']
    : undefined

/** Unknown paths and verbs are refused with whatever fits, and never answered. */
const refused = (status: number): Response | undefined =>
  status >= 400 ? { $ref: '#/components/responses/ErrorResponsedefault' } : undefined

/** The pattern of the targets that a path with parameters matches. */
function patternOf(path: string): RegExp {
  const pattern = path
    .toLowerCase()
    .split(/\{\w+\}/)
    .map((part) => part.replace(/[^\w/]/g, '\\$&'))
    .join('[^/]+')
  return new RegExp(`^${pattern}$`)
}

/** R1: letter case and further slashes do not matter. */
const plain = (path: string): string => {
  const segments = path.split('/').filter((segment) => segment !== '')
  return `/${segments.map(decoded).join('/')}`.toLowerCase()
}
const decoded = (segment: string): string => {
  try {
    const text = decodeURIComponent(segment)
    return text.includes('/') ? segment : text
  } catch {
    return segment
  }
}

const usual = { jsonp: true, basic: false, names: 'PascalCase' } as const

/** With the usual options. */
export const { document, valid, responseTo, operationAt } = await describedBy(usual)

/** The document that generators of clients read, with the usual options. */
export const canonical = await describedBy(usual, openapi)
