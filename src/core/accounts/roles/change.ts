import { emptyField, Fault, type FieldFault, invalidField } from '../../base/errors.ts'
import { nameMistake, otherCase } from '../../base/names.ts'
import {
  type AssignRoles,
  auditHeadKey,
  changesRequest,
  expiresKey,
  extensionOnly,
  formerSilencePermission,
  type GiveBackRoles,
  grantsRequest,
  otherCaseCode,
  permissionsBefore,
  rolesBefore,
  silencePermission,
  writeGrants,
} from '../../protocol/index.ts'
import {
  type Actor,
  adminGrant,
  type Changed,
  type Data,
  type Grant,
  type GrantEdits,
  type Grants,
  type Holdings,
  type User,
} from '../../store/index.ts'
import { type Expiry, expiryOf, refused, refuseExpiry } from './expiry.ts'
import { refuseBeyondOwnEnd, refuseUnlessLonger } from './limits.ts'

/** Characters. */
const maxLength = 128

export type RoleLists = {
  readonly AllRoles: readonly string[]
  readonly AllPermissions: readonly string[]
  /** The additional facts that a request asks for, and its end (O8). */
  readonly Meta?: Readonly<Record<string, string>>
}

/** A request and an actor that the guard has authorized; its checks come first (O1). */
export type RoleCall = {
  readonly data: Data
  readonly request: AssignRoles
  readonly actor: Actor
  /** The roles of the caller that end by themselves. Absent for the account of this machine. */
  readonly ending?: readonly Grant[] | undefined
}

type Change = {
  readonly data: Data
  readonly actor: Actor
  readonly meta: AssignRoles['Meta']
  readonly user: User
  readonly lists: Grants
  readonly add: Grants
  readonly remove: Grants
  readonly expiry: Expiry | undefined
  /** Called with what the change does, in its transaction. What it throws prevents the change. */
  readonly refuse: (before: Holdings, edits: GrantEdits) => void
}

/** Makes the change. Returns the complete lists after it (O2), and in Meta what the request asks for. */
async function change({ data, actor, meta, user, lists, add, remove, expiry, refuse }: Change): Promise<RoleLists> {
  const answer = ({ before, after }: Changed): RoleLists => {
    const Meta = {
      ...(isRequested(meta, changesRequest) ? { ...listsBefore(before), ...auditHead(data) } : {}),
      ...(expiry ? { [expiresKey]: expiry.text } : {}),
      ...grantsMeta(meta, after, expiry ? none : add),
    }
    const { roles, permissions } = after
    return { AllRoles: roles, AllPermissions: permissions, ...(Object.keys(Meta).length > 0 ? { Meta } : {}) }
  }
  // An empty request changes nothing and is not audited (O3).
  if (isEmpty(lists)) return answer({ before: user, after: user })
  const stored = { add, remove, endsAt: expiry?.endsAt, refuse }
  return answer(await data.users.changeGrants(user.id, stored, { ...actor, reason: meta?.reason }))
}

const none: Grants = { roles: [], permissions: [] }
const isEmpty = ({ roles, permissions }: Grants): boolean => roles.length + permissions.length === 0

const isRequested = (
  meta: AssignRoles['Meta'],
  { key, value }: { readonly key: string; readonly value: string },
): boolean => meta?.[key] === value

/** All grants if the request asks for them. Otherwise those of `silent` that have an end, which the request leaves alone. */
function grantsMeta(meta: AssignRoles['Meta'], { grants }: Holdings, silent: Grants): Readonly<Record<string, string>> {
  const names = ({ kind }: Grant) => (kind === 'role' ? silent.roles : silent.permissions)
  const all = isRequested(meta, grantsRequest)
  const listed = all
    ? grants
    : grants.filter((grant) => grant.endsAt !== undefined && names(grant).includes(grant.name))
  return all || listed.length > 0 ? { [grantsRequest.key]: writeGrants(listed) } : {}
}

/** The user of a request and its lists, checked in the order of O1. `added`: names that must not break the rules. */
async function readRequest(
  { data, request }: Pick<RoleCall, 'data' | 'request'>,
  check: (lists: Grants) => Grants,
): Promise<{ readonly user: User; readonly lists: Grants }> {
  const name = request.UserName ?? ''
  if (name.trim() === '') throw noUserName()
  const lists = listsOf(request)
  refuseMistaken(check(lists))
  const user = await data.users.find(name)
  if (!user) throw new Fault('NotFound', name)
  return { user, lists }
}

function listsOf(request: Pick<AssignRoles, 'Roles' | 'Permissions'>): Grants {
  const lists = { roles: distinct(request.Roles), permissions: distinct(request.Permissions) }
  refuseUnusable({ Roles: lists.roles, Permissions: lists.permissions })
  return lists
}

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
    // Nobody is shown to hold it, so an answer 200 would suggest that a removal has succeeded (O8).
    if (FieldName === 'Permissions' && names.includes(formerSilencePermission)) {
      return [invalidField(FieldName, `contains ${formerSilencePermission}, which is named ${silencePermission}`)]
    }
    return []
  })
  refuse(fields)
}

/**
 * Refuses to grant names that break the rules of user names (O2). They may be removed, because a store may contain
 * some.
 */
function refuseMistaken({ roles, permissions }: Grants): void {
  refuse(
    Object.entries({ Roles: roles, Permissions: permissions }).flatMap(([FieldName, names]): readonly FieldFault[] => {
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

/**
 * Adds roles and permissions to a user. Those already held keep their position (O2, O3), and their end unless the request
 * has one (O8). Throws Fault Forbidden for what an Admin for a time may not grant.
 */
export async function assign({ data, request, actor, ending = [] }: RoleCall): Promise<RoleLists> {
  const { user, lists } = await readRequest({ data, request }, (all) => all)
  const { Meta: meta } = request
  const expiry = expiryOf(meta, data.clock.now())
  if (expiry && isEmpty(lists)) throw refused('needs Roles or Permissions that end then')
  const extends_ = isRequested(meta, extensionOnly)
  if (extends_ && !expiry) throw refused('is required to extend a role')
  const refuse = (_: Holdings, edits: GrantEdits): void => {
    refuseBeyondOwnEnd(edits, expiry?.endsAt, adminGrant(ending)?.endsAt)
    if (extends_) refuseUnlessLonger(edits, expiry?.endsAt)
  }
  return await change({ data, actor, meta, user, lists, add: lists, remove: none, expiry, refuse })
}

/** Removes roles and permissions from a user. Throws Fault Conflict when the last Admin would lose Admin (O6). */
export async function unassign({ data, request, actor }: RoleCall): Promise<RoleLists> {
  const { user, lists } = await readRequest({ data, request }, () => none)
  const { Meta: meta } = request
  refuseExpiry(meta)
  const refuse = (before: Holdings): void => {
    if (isRequested(meta, changesRequest)) refuseOtherCase(lists, before)
  }
  return await change({ data, actor, meta, user, lists, add: none, remove: lists, expiry: undefined, refuse })
}

/**
 * Removes own roles and permissions of a user who is signed in (O8). Throws Fault Conflict for the last Admin, and for names
 * in another letter case. `user`: undefined for the account of this machine, which holds none.
 */
export async function giveBack({
  data,
  request,
  actor,
  user,
}: Pick<RoleCall, 'data' | 'actor'> & {
  readonly request: GiveBackRoles
  readonly user: User | undefined
}): Promise<RoleLists> {
  if (!user) {
    throw new Fault('Usage', 'nobody is signed in on this machine: its account removes roles of users instead', {
      hints: ['svc roles unassign NAME --role ROLE'],
    })
  }
  const lists = listsOf(request)
  const { Meta: meta } = request
  refuseExpiry(meta)
  const refuse = (before: Holdings): void => refuseOtherCase(lists, before)
  return await change({ data, actor, meta, user, lists, add: none, remove: lists, expiry: undefined, refuse })
}
