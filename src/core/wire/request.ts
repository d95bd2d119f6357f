import { Fault, type FieldFault } from '../errors.ts'
import type { Dto } from '../protocol/index.ts'
import { fold } from './fields.ts'
import type { Values } from './format.ts'
import { badRequest, refusedField } from './problems.ts'
import type { Pair } from './query.ts'

/** Where the parts of a request came from. */
export type Sources = {
  readonly body?: Values | undefined
  readonly path?: Values | undefined
  readonly query?: Values | undefined
  readonly form?: Values | undefined
}

/** N7: body < path < query < form. */
export const merge = ({ body, path, query, form }: Sources): Values => ({ ...body, ...path, ...query, ...form })

/** H3: throws one 400 NotEmpty that names every required field without a value. */
export const requireFields = (schema: Dto, values: Values): void => {
  const missing = Object.entries(schema.fields)
    .filter(([name, field]) => field.kind === 'required' && (values[name] ?? '') === '')
    .map(([name]): FieldFault => {
      return { ErrorCode: 'NotEmpty', FieldName: name, Message: `'${name}' must not be empty.` }
    })
  if (missing[0]) throw new Fault('NotEmpty', missing[0].Message, { fields: missing })
}

/** N7: refuses secrets in a query, because queries are logged. Compares without letter case, repeats no value. */
export const refuseInQuery = (names: readonly string[], pairs: readonly Pair[]): void => {
  const folded = new Set(names.map(fold))
  const refused = new Map<string, FieldFault>()
  for (const [written] of pairs) {
    const name = fold(written)
    if (name === undefined || !folded.has(name)) continue
    refused.set(written, refusedField(written, `'${written}' is not accepted in a query: send it in the body`))
  }
  const [first, ...rest] = refused.values()
  if (first) throw badRequest([first, ...rest])
}
