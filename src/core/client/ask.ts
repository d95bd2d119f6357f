import { type Operation, type OperationSpec, operations, runMediaType, schemaOf } from '../protocol/index.ts'
import type { Call, Credential } from '../service.ts'
import type { ClientAsk } from './exchange.ts'

/**
 * Asking by GET has all inputs in the query; every other operation is asked by POST, with a body. Who is signed in is
 * asked by the GET that the call names (A6).
 */
export const verbOf = (operation: Operation, call: Call): 'GET' | 'POST' => {
  const { routes }: OperationSpec = operations[operation]
  const takes = (verb: 'GET' | 'POST'): boolean => routes.some((route) => route.verbs.includes(verb))
  return takes('POST') && !(call.verb === 'GET' && takes('GET')) ? 'POST' : 'GET'
}

/** What a request presents of itself (A9, C6). */
export function credentialHeaders(credential: Credential | undefined): Readonly<Record<string, string>> {
  if (!credential) return {}
  if (credential.kind === 'bearer') return { Authorization: `Bearer ${credential.token}` }
  return credential.permanent
    ? { 'X-ss-pid': credential.secret, 'X-ss-opt': 'perm' }
    : { 'X-ss-id': credential.secret, 'X-ss-opt': 'temp' }
}

/** What is sent for a call (C1). `json` is the body of a POST. Read off the operation's row. */
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
      // The interface's JSON is in the list, so that a server that knows no runs answers it.
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
    // Dots alone would name another path, and what follows one could be taken for a format (F1).
    return names.every((name) => typeof values[name] === 'string' && /^[^.]+$/.test(values[name]))
      ? [path.replace(placeholder, (_, name: string) => encodeURIComponent(String(values[name])))]
      : []
  })
  return filled.sort((a, b) => b.length - a.length)[0] ?? routes[0].path
}

/**
 * The query, of the kinds that a query here consists of: texts, flags, numbers and choices. Lists and maps are encoded
 * by `wire`, which is loaded while the server works, not before it is asked.
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
