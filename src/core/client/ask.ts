import { type Operation, type OperationSpec, operations, runMediaType, schemaOf } from '../protocol/index.ts'
import type { Call, Credential } from '../service.ts'
import type { ClientAsk } from './exchange.ts'

/**
 * An operation whose routes have only GET, with all inputs in the query, uses GET. Every other operation uses POST
 * with a body. The query for the current session uses the GET that the call names (A6).
 */
export const verbOf = (operation: Operation, call: Call): 'GET' | 'POST' => {
  const { routes }: OperationSpec = operations[operation]
  const takes = (verb: 'GET' | 'POST'): boolean => routes.some((route) => route.verbs.includes(verb))
  return takes('POST') && !(call.verb === 'GET' && takes('GET')) ? 'POST' : 'GET'
}

/** The headers that carry the credential (A9, C6). */
export function credentialHeaders(credential: Credential | undefined): Readonly<Record<string, string>> {
  if (!credential) return {}
  if (credential.kind === 'bearer') return { Authorization: `Bearer ${credential.token}` }
  return credential.permanent
    ? { 'X-ss-pid': credential.secret, 'X-ss-opt': 'perm' }
    : { 'X-ss-id': credential.secret, 'X-ss-opt': 'temp' }
}

/** The HTTP request of a call (C1), built from the operation's row. `json` is the body of a POST. */
export function askFor(
  operation: Operation,
  request: unknown,
  call: Call,
  client: { readonly prefix: string; readonly userAgent: string },
  json?: string,
): ClientAsk {
  const values = request as Readonly<Record<string, unknown>>
  const body = json === undefined ? undefined : Buffer.from(json)
  const query = body ? '' : queryOf(operation, values)
  return {
    method: verbOf(operation, call),
    path: `${client.prefix}${pathOf(operation, values)}${query === '' ? '' : `?${query}`}`,
    headers: {
      // Includes plain JSON, so that a server that does not know the run document can answer.
      Accept: operation === 'healthCheck' ? `${runMediaType}, application/json` : 'application/json',
      'User-Agent': client.userAgent,
      'X-Correlation-Id': call.correlationId,
      ...(call.fresh ? { 'Cache-Control': 'no-cache' } : {}),
      ...(call.calledByPeer ? { 'X-Svc-Hops': '1' } : {}),
      ...(body ? { 'Content-Type': 'application/json', 'Content-Length': String(body.length) } : {}),
    },
    body,
  }
}

const placeholder = /\{(\w+)\}/g

/** The longest of the operation's paths whose placeholders the request fills. */
function pathOf(operation: Operation, values: Readonly<Record<string, unknown>>): string {
  const { routes }: OperationSpec = operations[operation]
  const filled = routes.flatMap(({ path }) => {
    const names = [...path.matchAll(placeholder)].map(([, name = '']) => name)
    // Dots alone would change the path, and the text after a dot could pass for a format (F1).
    return names.every((name) => typeof values[name] === 'string' && /^[^.]+$/.test(values[name]))
      ? [path.replace(placeholder, (_, name: string) => encodeURIComponent(String(values[name])))]
      : []
  })
  return filled.sort((a, b) => b.length - a.length)[0] ?? routes[0].path
}

/**
 * Encodes the simple field types: texts, flags, numbers and choices. Lists and maps need `wire`, which is loaded
 * later, while the server works on its answer.
 */
function queryOf(operation: Operation, values: Readonly<Record<string, unknown>>): string {
  const pairs = Object.entries(operations[operation].request.fields).flatMap(([name, field]) => {
    const value = values[name]
    if (value === undefined || value === null || value === '') return []
    if (!asItIs.has(schemaOf(field).kind)) throw new TypeError(`${operation}: ${name} cannot be put into a query`)
    return [`${name}=${encodeURIComponent(typeof value === 'string' ? value : JSON.stringify(value))}`]
  })
  return pairs.join('&')
}
const asItIs: ReadonlySet<string> = new Set(['text', 'flag', 'number', 'choice'])
