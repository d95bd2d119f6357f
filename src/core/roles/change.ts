import { emptyField, Fault, type FieldFault, invalidField } from '../errors.ts'
import { nameMistake, otherCase } from '../names.ts'
import {
  type AssignRoles,
  auditHeadKey,
  changesWanted,
  otherCaseCode,
  permissionsBefore,
  rolesBefore,
} from '../protocol/index.ts'
import type { Actor, Data, Grants } from '../store/index.ts'

/** Characters. */
const maxLength = 128

export type RoleLists = {
  readonly AllRoles: readonly string[]
  readonly AllPermissions: readonly string[]
  /** The lists before the change, for a request that wants them (O8). */
  readonly Meta?: Readonly<Record<string, string>>
}

/** A request and an actor that the guard has authorized; its checks come first (O1). */
export type RoleCall = { readonly data: Data; readonly request: AssignRoles; readonly actor: Actor }

/** Performs the change, starting with the check of the user name (O1). Returns the complete lists after it (O2). */
export async function change(
  { data, request, actor }: RoleCall,
  shape: (grants: Grants) => { readonly add: Grants; readonly remove: Grants },
): Promise<RoleLists> {
  const name = request.UserName ?? ''
  if (name.trim() === '') throw noUserName()
  const grants = { roles: distinct(request.Roles), permissions: distinct(request.Permissions) }
  const { add, remove } = shape(grants)
  refuseUnusable({ Roles: grants.roles, Permissions: grants.permissions })
  refuseMistaken({ Roles: add.roles, Permissions: add.permissions })
  const user = await data.users.find(name)
  if (!user) throw new Fault('NotFound', name)
  // An empty request changes nothing and is not audited (O3).
  const wantsBefore = request.Meta?.[changesWanted.key] === changesWanted.value
  const answer = (after: Grants, before: Grants): RoleLists =>
    wantsBefore ? { ...lists(after), Meta: { ...listsBefore(before), ...auditHead(data) } } : lists(after)
  if (grants.roles.length === 0 && grants.permissions.length === 0) return answer(user, user)
  const reason = request.Meta?.reason
  const refuse = wantsBefore ? (before: Grants) => refuseOtherCase(remove, before) : undefined
  const { before, after } = await data.users.changeGrants(user.id, { add, remove, refuse }, { ...actor, reason })
  return answer(after, before)
}

export const none: Grants = { roles: [], permissions: [] }

const lists = ({ roles, permissions }: Grants): RoleLists => ({ AllRoles: roles, AllPermissions: permissions })

const listsBefore = ({ roles, permissions }: Grants): Readonly<Record<string, string>> => ({
  [rolesBefore]: JSON.stringify(roles),
  [permissionsBefore]: JSON.stringify(permissions),
})

function auditHead({ audit }: Data): Readonly<Record<string, string>> {
  const head = audit.lastHead()
  return head ? { [auditHeadKey]: `${head.number}:${head.hash}` } : {}
}

/** An answer 200 would suggest that the rights are gone (O8). */
function refuseOtherCase(remove: Grants, before: Grants): void {
  const lists = { Roles: [remove.roles, before.roles], Permissions: [remove.permissions, before.permissions] } as const
  const fields = Object.entries(lists).flatMap(([FieldName, [requested, current]]) =>
    otherCase(requested, current).map(([name, other]): FieldFault => {
      const Message = `The user does not have '${name}', but has '${other}'`
      return { ErrorCode: otherCaseCode, FieldName, Message }
    }),
  )
  const [first] = fields
  if (first) throw new Fault('Conflict', first.Message, { errorCode: otherCaseCode, fields })
}

const distinct = (names: readonly string[] | undefined): readonly string[] => [...new Set(names)]

function noUserName(): Fault {
  const Message = 'Value cannot be null.'
  return new Fault('BadRequest', Message, {
    errorCode: 'ArgumentNullException',
    fields: [{ ErrorCode: 'ArgumentNullException', FieldName: 'UserName', Message }],
  })
}

/** Refuses invalid names and reports the lists that contain them (O3, S4). */
function refuseUnusable(lists: Readonly<Record<'Roles' | 'Permissions', readonly string[]>>): void {
  const fields = Object.entries(lists).flatMap(([FieldName, names]): readonly FieldFault[] => {
    if (names.some((name) => name.trim() === '')) {
      return [{ ...emptyField(FieldName), Message: `'${FieldName}' must not contain an empty name.` }]
    }
    if (names.some((name) => name.includes('\0') || !name.isWellFormed())) {
      return [invalidField(FieldName, 'contains a name that is not valid text')]
    }
    if (names.some((name) => name.length > maxLength)) {
      return [invalidField(FieldName, `contains a name longer than ${maxLength} characters`)]
    }
    return []
  })
  refuse(fields)
}

/**
 * Refuses to grant names that break the rules of user names (O2). They may be removed, because a store may contain
 * some.
 */
function refuseMistaken(lists: Readonly<Record<'Roles' | 'Permissions', readonly string[]>>): void {
  refuse(
    Object.entries(lists).flatMap(([FieldName, names]): readonly FieldFault[] => {
      const mistake = names.map(nameMistake).find((each) => each !== undefined)
      if (mistake === undefined) return []
      return [invalidField(FieldName, `contains a name that ${mistake}`)]
    }),
  )
}

function refuse(fields: readonly FieldFault[]): void {
  if (fields.length === 0) return
  throw new Fault('BadRequest', fields.map(({ Message }) => Message).join(' '), {
    errorCode: 'ValidationException',
    fields,
  })
}

/** Adds roles and permissions to a user. Those already held keep their position (O2, O3). */
export const assign = (call: RoleCall): Promise<RoleLists> => change(call, (grants) => ({ add: grants, remove: none }))

/** Removes roles and permissions from a user. Throws Fault Conflict when the last Admin would lose Admin (O6). */
export const unassign = (call: RoleCall): Promise<RoleLists> =>
  change(call, (grants) => ({ add: none, remove: grants }))
