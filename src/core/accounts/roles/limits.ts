import { Fault, type FieldFault, invalidField } from '../../base/errors.ts'
import { expiresKey } from '../../protocol/index.ts'
import { adminGrant, type Grant, type GrantEdits } from '../../store/index.ts'

/**
 * The faults of a change that a temporary Admin may not make (O8): one that makes or prolongs Admins, or grants
 * anything beyond the own end. Pure: `until` is the end of the caller's role Admin, `endsAt` that of what the edits
 * grant.
 */
export function beyondOwnEnd(
  { added, changed }: GrantEdits,
  endsAt: number | 'never' | undefined,
  until: number,
): readonly FieldFault[] {
  const granted = [...added, ...changed]
  if (granted.length === 0) return []
  const end = new Date(until).toISOString()
  if (adminGrant(granted)) {
    return [invalidField('Roles', `must not contain Admin: your own role Admin ends at ${end}, so you cannot grant it`)]
  }
  if (typeof endsAt === 'number' && endsAt <= until) return []
  const what = `must be ${end} or earlier: your own role Admin ends then, and nothing that you grant may last longer`
  return [invalidField(`Meta.${expiresKey}`, what)]
}

/** Throws Fault Forbidden for what a temporary Admin may not do. */
export function refuseBeyondOwnEnd(
  edits: GrantEdits,
  endsAt: number | 'never' | undefined,
  until: number | undefined,
): void {
  const fields = until === undefined ? [] : beyondOwnEnd(edits, endsAt, until)
  const [first] = fields
  if (first) throw new Fault('Forbidden', first.Message, { fields })
}

/** Throws Fault Conflict unless every name is held for a time and gets a later end. */
export function refuseUnlessLonger(edits: GrantEdits, endsAt: number | 'never' | undefined): void {
  const { added, changed } = edits
  const [missing] = added
  if (missing) throw conflict(missing, 'is not held, or has ended: it cannot be extended, only assigned again')
  const permanent = changed.find((grant) => grant.endsAt === undefined)
  if (permanent) throw conflict(permanent, 'is permanent: there is no end to extend')
  const earlier = changed.find(
    (grant) => grant.endsAt !== undefined && endsAt !== 'never' && grant.endsAt >= (endsAt ?? 0),
  )
  if (earlier) throw conflict(earlier, `ends at ${new Date(earlier.endsAt ?? 0).toISOString()}, which is later`)
}

function conflict({ kind, name }: Grant, what: string): Fault {
  const field = invalidField(kind === 'role' ? 'Roles' : 'Permissions', `'${name}' ${what}`)
  return new Fault('Conflict', `The ${kind} '${name}' ${what}`, { fields: [field] })
}
