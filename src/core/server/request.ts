import { Fault } from '../errors.ts'
import { operations } from '../protocol/index.ts'
import {
  bind,
  merge,
  type Pair,
  readBody,
  refuseInQuery,
  requireFields,
  type Sources,
  type Values,
} from '../wire/index.ts'
import { receive } from './body.ts'
import { type Exchange, orCancelled } from './exchange.ts'
import type { FoundOperation } from './routes.ts'
import type { Target } from './target.ts'

/**
 * The request of an operation, from its body, path, query and form. Throws one 400 that names every
 * field in the query that is wrong or missing (H3).
 */
export async function readRequest(
  exchange: Exchange,
  { operation, given, style }: FoundOperation,
  target: Target,
  maxBody: number,
): Promise<Values> {
  const { request: schema, neverInQuery } = operations[operation]
  const { request } = exchange
  const bodiless = !hasBody(request.method)
  refuseInQuery(neverInQuery, target.pairs)
  const bytes = bodiless ? undefined : await orCancelled(exchange, receive(exchange, maxBody))
  const sources: Sources = {
    ...(bytes && (await readBody(schema, request.headers['content-type'], bytes, rules[style]))),
    path: bind(schema, given),
  }
  const values = merge({ ...sources, query: bindAll(operation, target.pairs, merge(sources)) })
  requireFields(schema, values)
  // Shared with everyone who asks for the same target, so nobody may change it.
  if (bodiless) target.request = Object.freeze(values)
  return values
}

/** The request that the same target made before; only without a body, which would say more. */
export const remembered = ({ request }: Exchange, target: Target): Values | undefined =>
  hasBody(request.method) ? undefined : target.request

const hasBody = (method: string | undefined): boolean => method === 'POST' || method === 'DELETE'
const rules = { route: { plainText: 'ignored' }, reply: { plainText: 'json' } } as const

/** Binds the query; what is missing beside is told together with what is wrong. */
function bindAll(operation: keyof typeof operations, pairs: readonly Pair[], others: Values): Values {
  const { request: schema } = operations[operation]
  try {
    return bind(schema, pairs)
  } catch (error) {
    if (!(error instanceof Fault) || error.details.fields === undefined) throw error
    const missing = missingBeside(schema, pairs, others)
    throw new Fault(error.fault, error.message, {
      ...error.details,
      fields: [...error.details.fields, ...missing],
    })
  }
}

function missingBeside(schema: Parameters<typeof requireFields>[0], pairs: readonly Pair[], others: Values) {
  const given = new Set(pairs.filter(([, value]) => value !== '').map(([name]) => name.toLowerCase()))
  const named = Object.keys(schema.fields).filter((name) => given.has(name.toLowerCase()))
  try {
    requireFields(schema, { ...others, ...Object.fromEntries(named.map((name) => [name, true])) })
    return []
  } catch (error) {
    if (error instanceof Fault) return error.details.fields ?? []
    throw error
  }
}
