import { type Dto, inStyle, type NameStyle, type Schema, schemaOf } from '../index.ts'
import { badRequest, twoSpellings } from './problems.ts'

export type Member = {
  readonly name: string
  readonly schema: Schema
  /** Cache of `keyOf`, by style. */
  readonly keys: Partial<Record<NameStyle, string>>
}

/** A field that a client sent: the name as written and all its values. */
export type Picked<T> = {
  readonly member: Member
  readonly written: string
  readonly values: readonly [T, ...T[]]
  /** Another spelling of the name, in the same source and with another value. */
  readonly otherSpelling?: string | undefined
}

type Index = { readonly members: readonly Member[]; readonly byName: ReadonlyMap<string, Member> }

const indexes = new WeakMap<Dto, Index>()

const indexOf = (schema: Dto): Index => {
  const cached = indexes.get(schema)
  if (cached) return cached
  const members = Object.entries(schema.fields).map(([name, field]) => ({ name, schema: schemaOf(field), keys: {} }))
  // Most clients write the exact name, which then need not be folded.
  const namesOf = ({ name }: Member): readonly string[] => [fold(name) ?? name, name]
  const byName = new Map(members.flatMap((member) => namesOf(member).map((name) => [name, member] as const)))
  const index = { members, byName }
  indexes.set(schema, index)
  return index
}

/** The start of the member in JSON: `"Name":` */
export const keyOf = ({ name, keys }: Member, style: NameStyle): string =>
  (keys[style] ??= `${JSON.stringify(inStyle(name, style))}:`)

const printableAscii = /^[\x20-\x7e]*$/

/**
 * A name folded for case-insensitive comparison. Folds ASCII only: in Unicode the Kelvin sign is a `k`, and such a
 * spelling of a field name would bypass simpler comparisons.
 */
export const fold = (name: string): string | undefined => (printableAscii.test(name) ? name.toLowerCase() : undefined)

export const membersOf = (schema: Dto): readonly Member[] => indexOf(schema).members

export const memberNamed = (schema: Dto, name: string): Member | undefined => {
  const { byName } = indexOf(schema)
  return byName.get(name) ?? byName.get(fold(name) ?? name)
}

/**
 * Matches the client's names to a DTO's fields, in any letter case (N1). An exact spelling wins over another case;
 * unknown names are dropped. The result is in the schema's order.
 */
export const pick = <T>(schema: Dto, pairs: Iterable<readonly [name: string, value: T]>): readonly Picked<T>[] => {
  type Entry = { member: Member; written: string; values: [T, ...T[]]; otherSpelling?: string | undefined }
  const byMember = new Map<Member, Entry>()
  for (const [written, value] of pairs) {
    const member = memberNamed(schema, written)
    if (!member) continue
    const before = byMember.get(member)
    if (!before) {
      byMember.set(member, { member, written, values: [value] })
      continue
    }
    const exact = written === member.name
    const differs = before.written !== written && before.values.some((other) => !isSame(other, value))
    const otherSpelling = before.otherSpelling ?? (differs ? (exact ? before.written : written) : undefined)
    if (exact && before.written !== member.name)
      byMember.set(member, { member, written, values: [value], otherSpelling })
    else {
      if (exact || before.written !== member.name) before.values.push(value)
      before.otherSpelling = otherSpelling
    }
  }
  return membersOf(schema)
    .map((member) => byMember.get(member))
    .filter((one) => one !== undefined)
}

/** Whether two values of a field are the same. */
export const isSame = (one: unknown, other: unknown): boolean =>
  one === other || (typeof one === 'object' && JSON.stringify(one) === JSON.stringify(other))

/**
 * As `pick`, for one source of a request. Throws a 400 for two spellings of one field with different values: a proxy or
 * a filter in front of svc may go by the other one (N1).
 */
export const pickFromRequest = <T>(
  schema: Dto,
  pairs: Iterable<readonly [name: string, value: T]>,
): readonly Picked<T>[] => {
  const picked = pick(schema, pairs)
  const [first, ...rest] = picked.flatMap(({ written, otherSpelling }) =>
    otherSpelling === undefined ? [] : twoSpellings(written, otherSpelling),
  )
  if (first) throw badRequest([first, ...rest])
  return picked
}
