import { Fault } from '../../core/errors.ts'
import { nearestHint } from '../../core/suggest.ts'

/** The row with a name. Throws `Fault` Usage with the nearest name and all names; `what` is the word for a row. */
export function rowNamed<Row extends { readonly name: string }>(
  rows: readonly Row[],
  name: string,
  what: 'kind' | 'profile',
): Row {
  const row = rows.find((one) => one.name === name)
  if (row) return row
  const names = rows.map((one) => one.name)
  throw new Fault('Usage', `unknown ${what} "${name}"`, {
    hints: [...nearestHint(name, names), `${what === 'kind' ? 'Kinds' : 'Profiles'}: ${names.join(' ')}`],
  })
}
