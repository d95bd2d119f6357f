import { Fault, type FieldFault } from '../errors.ts'
import type { AssignRoles } from '../protocol/index.ts'
import type { Actor, Data, Grants } from '../store/index.ts'

/** Characters. */
const longest = 128

export type RoleLists = { readonly AllRoles: readonly string[]; readonly AllPermissions: readonly string[] }

/** A request and an actor whom the guard has let in (O1: its checks come first). */
export type RoleCall = { readonly data: Data; readonly request: AssignRoles; readonly actor: Actor }

/** O1 from the user name on; gives the complete lists after the change (O2). */
export async function change(
  { data, request, actor }: RoleCall,
  shape: (grants: Grants) => { readonly add: Grants; readonly remove: Grants },
): Promise<RoleLists> {
  const name = request.UserName ?? ''
  if (name.trim() === '') throw noUserName()
  const grants = { roles: distinct(request.Roles), permissions: distinct(request.Permissions) }
  refuseUnusable({ Roles: grants.roles, Permissions: grants.permissions })
  const user = await data.users.find(name)
  if (!user) throw new Fault('NotFound', name)
  // O3: asking for nothing changes nothing, and is no change in the audit.
  if (grants.roles.length === 0 && grants.permissions.length === 0) return lists(user)
  const reason = request.Meta?.reason
  const { after } = await data.users.changeGrants(user.id, shape(grants), { ...actor, reason })
  return lists(after)
}

export const none: Grants = { roles: [], permissions: [] }

const lists = ({ roles, permissions }: Grants): RoleLists => ({ AllRoles: roles, AllPermissions: permissions })

const distinct = (names: readonly string[] | undefined): readonly string[] => [...new Set(names)]

function noUserName(): Fault {
  const Message = 'Value cannot be null.'
  return new Fault('BadRequest', Message, {
    errorCode: 'ArgumentNullException',
    fields: [{ ErrorCode: 'ArgumentNullException', FieldName: 'UserName', Message }],
  })
}

/** O3, S4: names the lists that hold a name which nobody can hold. */
function refuseUnusable(lists: Readonly<Record<'Roles' | 'Permissions', readonly string[]>>): void {
  const fields = Object.entries(lists).flatMap(([FieldName, names]): readonly FieldFault[] => {
    if (names.some((name) => name.trim() === '')) {
      return [{ ErrorCode: 'NotEmpty', FieldName, Message: `'${FieldName}' must not hold an empty name.` }]
    }
    if (names.some((name) => name.includes('\0') || !name.isWellFormed())) {
      return [{ ErrorCode: 'InvalidValue', FieldName, Message: `'${FieldName}' holds a name that is no text` }]
    }
    if (names.some((name) => name.length > longest)) {
      return [
        { ErrorCode: 'InvalidValue', FieldName, Message: `'${FieldName}' holds a name over ${longest} characters` },
      ]
    }
    return []
  })
  if (fields.length === 0) return
  throw new Fault('BadRequest', fields.map(({ Message }) => Message).join(' '), {
    errorCode: 'ValidationException',
    fields,
  })
}

/** Adds roles and permissions to a user; what is held already stays where it is (O2, O3). */
export const assign = (call: RoleCall): Promise<RoleLists> => change(call, (grants) => ({ add: grants, remove: none }))

/** Removes roles and permissions from a user. Fault Conflict when the last Admin would lose Admin (O6). */
export const unassign = (call: RoleCall): Promise<RoleLists> =>
  change(call, (grants) => ({ add: none, remove: grants }))
