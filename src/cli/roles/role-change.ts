import { Fault } from '../../core/errors.ts'
import { adminWarning, looksLikeAdmin, otherCase, sameExceptCase } from '../../core/names.ts'
import {
  type AssignRoles,
  type AssignRolesResponse,
  changesWanted,
  otherCaseCode,
  permissionMistake,
  permissionsBefore,
  rolesBefore,
} from '../../core/protocol/index.ts'
import type { Call, Service } from '../../core/service.ts'
import { didYouMean } from '../../core/suggest.ts'
import { shellWord } from '../render/hints.ts'
import type { CommandSession } from '../session/session.ts'
import { unknownUser } from '../session/unknown-user.ts'

export type Lists = { readonly roles: readonly string[]; readonly permissions: readonly string[] }
export type RoleChange = Lists & { readonly action: 'assign' | 'unassign'; readonly userName: string }
export type RoleChanged = {
  readonly action: RoleChange['action']
  readonly userName: string
  /** The roles and permissions that the change granted or removed. */
  readonly changed: Lists
  /** The requested roles and permissions that the change did not affect. */
  readonly unchanged: Lists
  /** All roles and permissions after the change, oldest first. With `dryRun`, those before it. */
  readonly all: Lists
  readonly dryRun: boolean
  /** Possible mistakes, one sentence each. */
  readonly notes: readonly string[]
}

export type Asking = {
  readonly session: CommandSession
  readonly call: Call
  readonly dryRun: boolean
  readonly reason: string | undefined
}

export const isEmpty = ({ roles, permissions }: Lists): boolean => roles.length + permissions.length === 0

/** The user's roles and permissions. An assignment of nothing returns them (O3), so this works with any server. */
export async function showRoles(asking: Pick<Asking, 'session' | 'call'>, userName: string): Promise<Lists> {
  return await ask(asking, 'assignRoles', { UserName: userName, Roles: [], Permissions: [] })
}

/**
 * Makes one change and derives what it changed from the lists before and after. Refuses in advance to unassign `admin`
 * from a user who has `Admin`: exit code 0 would suggest that the rights are gone.
 */
export async function changeRoles(asking: Asking, change: RoleChange): Promise<RoleChanged> {
  if (!asking.dryRun && answersWithBefore(asking.session)) return await changeAtOnce(asking, change)
  const before = await showRoles(asking, change.userName)
  if (change.action === 'unassign') refuseOtherCase(change, before)
  // Before the change: after it, a mistyped role is one that somebody holds.
  const notes = await notesOn(asking, change, before)
  const after = asking.dryRun ? before : await ask(asking, operationOf(change), requestOf(asking, change))
  return described(asking, change, before, after, notes)
}

/** Whether the server said at the sign-in that it answers a change with the lists before it (O8). */
const answersWithBefore = ({ target }: CommandSession): boolean =>
  target.kind === 'server' && target.profile?.roleChangesInOneRequest === true

/** Makes a change in one request. The server compares letter case in the transaction of the change. */
async function changeAtOnce(asking: Asking, change: RoleChange): Promise<RoleChanged> {
  const { key, value } = changesWanted
  try {
    const after = await ask(asking, operationOf(change), requestOf(asking, change, { [key]: value }))
    if (after.before) return described(asking, change, after.before, after, await notesOn(asking, change, after.before))
  } catch (error) {
    if (error instanceof Fault && error.errorCode === otherCaseCode)
      refuseOtherCase(change, await showRoles(asking, change.userName))
    throw error
  }
  throw new Fault(
    'UnreadableAnswer',
    `${asking.session.label} accepted the change, but did not list the user's previous roles`,
    {
      hints: [
        'The server no longer does what it announced at the sign-in: svc login',
        `svc roles show ${shellWord(change.userName)}   shows the current roles`,
      ],
    },
  )
}

const operationOf = ({ action }: RoleChange): Changing => (action === 'assign' ? 'assignRoles' : 'unAssignRoles')

function requestOf({ reason }: Asking, change: RoleChange, more: Readonly<Record<string, string>> = {}): AssignRoles {
  const meta = { ...(reason === undefined ? {} : { reason }), ...more }
  return {
    UserName: change.userName,
    Roles: change.roles,
    Permissions: change.permissions,
    ...(Object.keys(meta).length === 0 ? {} : { Meta: meta }),
  }
}

/** The change in terms of the lists before and after it. */
function described(
  { dryRun, session }: Asking,
  change: RoleChange,
  before: Lists,
  after: Lists,
  notes: readonly string[],
): RoleChanged {
  const { action, userName } = change
  const changed = changedBy(change, before)
  if (!dryRun) confirm(change, after, session.label)
  const { roles, permissions } = after
  return { action, userName, dryRun, notes, changed, unchanged: without(change, changed), all: { roles, permissions } }
}

/** What a change really changes, for a user with the lists `before`. */
const changedBy = (change: RoleChange, before: Lists): Lists =>
  change.action === 'assign' ? without(change, before) : within(change, before)

const notesOn = async ({ session }: Asking, change: RoleChange, before: Lists): Promise<readonly string[]> =>
  change.action === 'assign' ? await slips(changedBy(change, before), before, session, change.userName) : []

/** Removes all roles and permissions of the user. */
export async function takeAll(asking: Asking, userName: string): Promise<RoleChanged> {
  const current = await showRoles(asking, userName)
  return await changeRoles(asking, { action: 'unassign', userName, ...current })
}

type Changing = Extract<keyof Service, 'assignRoles' | 'unAssignRoles'>

async function ask(
  { session, call }: Pick<Asking, 'session' | 'call'>,
  operation: Changing,
  request: AssignRoles,
): Promise<Lists & { readonly before?: Lists | undefined }> {
  let response: AssignRolesResponse
  try {
    response = await session.service[operation](request, call)
  } catch (error) {
    if (error instanceof Fault && error.fault === 'NotFound')
      throw await unknownUser(error, request.UserName ?? '', session)
    throw error
  }
  const [roles, permissions] = [namesIn(response.Meta?.[rolesBefore]), namesIn(response.Meta?.[permissionsBefore])]
  const before = roles && permissions && { roles, permissions }
  const { AllRoles = [], AllPermissions = [] } = response
  return { roles: AllRoles, permissions: AllPermissions, ...(before ? { before } : {}) }
}

/** The names of a JSON array. Undefined for anything else: servers send what they want. */
function namesIn(text: string | undefined): readonly string[] | undefined {
  const names = text === undefined ? undefined : parsed(text)
  return Array.isArray(names) && names.every((name) => typeof name === 'string') ? names : undefined
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function refuseOtherCase(change: RoleChange, current: Lists): void {
  const kinds = [
    { word: 'role', flag: '--role', pairs: otherCase(change.roles, current.roles) },
    { word: 'permission', flag: '--permission', pairs: otherCase(change.permissions, current.permissions) },
  ]
  const [first] = kinds.flatMap(({ word, pairs }) => pairs.map(([name, other]) => ({ word, name, other })))
  if (!first) return
  const flags = kinds.flatMap(({ flag, pairs }) => pairs.map(([, other]) => `${flag} ${shellWord(other)}`)).join(' ')
  throw new Fault(
    'NotFound',
    `${change.userName} does not have the ${first.word} "${first.name}", but has "${first.other}"; nothing was changed`,
    {
      hints: ['Roles and permissions are case-sensitive.', `svc roles unassign ${shellWord(change.userName)} ${flags}`],
    },
  )
}

/** Possible mistakes in an assignment; it is made all the same. */
async function slips(
  changes: Lists,
  current: Lists,
  session: CommandSession,
  userName: string,
): Promise<readonly string[]> {
  const all = [...changes.roles, ...changes.permissions]
  const similar = [
    ...otherCase(changes.roles, current.roles),
    ...otherCase(changes.permissions, current.permissions),
  ].map(([name, other]) => `"${name}" is not "${other}", which ${userName} already has: role names are case-sensitive.`)
  const miscased = (role: string): boolean =>
    current.roles.some((name) => sameExceptCase(name, role)) || looksLikeAdmin(role)
  const lookalikes = adminWarning(changes.roles.filter((role) => !sameExceptCase(role, 'Admin')))
  return [
    ...similar,
    ...changes.roles
      .filter((role) => role !== 'Admin' && sameExceptCase(role, 'Admin') && !current.roles.includes('Admin'))
      .map((role) => `"${role}" is not "Admin", the administrator role: role names are case-sensitive.`),
    ...changes.permissions.flatMap((name) => {
      const mistake = permissionMistake(name)
      return mistake === undefined ? [] : [`${mistake}.`]
    }),
    ...(lookalikes === undefined ? [] : [`${lookalikes}.`]),
    ...(await unknownRoles(
      changes.roles.filter((role) => !miscased(role)),
      current,
      session,
      userName,
    )),
    ...all
      .filter((name) => name.includes(','))
      .map((name) => `"${name}" is one name that contains a comma; repeat the flag for several names.`),
  ]
}

/** The number of role names that the store returns at most. With more, a missing name may still be a role. */
const maxRoleNames = 1_000

/**
 * Notes for roles that resemble a known role. In process, the known roles are those of the store; at a server, which
 * does not list its roles, they are Admin and the roles of the user.
 */
async function unknownRoles(
  requested: readonly string[],
  current: Lists,
  session: CommandSession,
  userName: string,
): Promise<readonly string[]> {
  if (requested.every((role) => role === 'Admin')) return []
  const stored = await session.runtime?.admin?.roles.names()
  const candidates = [...new Set(['Admin', ...current.roles, ...(stored ?? [])])]
  const isComplete = stored !== undefined && stored.length < maxRoleNames
  return requested.flatMap((role) => {
    // Short names such as R1 and R2 differ on purpose.
    const nearest = candidates.includes(role) || role.length < 4 ? undefined : didYouMean(role, candidates)
    if (nearest === undefined) return []
    const fact = isComplete ? 'is not a role of any user' : `is a new role for ${userName}`
    return [`"${role}" ${fact}; did you mean "${nearest}"?`]
  })
}

/** Fails when a server reports success without having made the change. */
function confirm(change: RoleChange, after: Lists, label: string): void {
  const mismatch = change.action === 'assign' ? without(change, after) : within(change, after)
  if (isEmpty(mismatch)) return
  const names = [...mismatch.roles, ...mismatch.permissions].map((name) => `"${name}"`).join(', ')
  throw new Fault(
    'UnreadableAnswer',
    `${label} reported success, but its lists ${change.action === 'assign' ? 'do not contain' : 'still contain'} ${names}`,
    { hints: [`To check again: svc roles show ${shellWord(change.userName)}`] },
  )
}

const without = (requested: Lists, current: Lists): Lists => filtered(requested, current, false)
const within = (requested: Lists, current: Lists): Lists => filtered(requested, current, true)
const filtered = (requested: Lists, current: Lists, present: boolean): Lists => ({
  roles: [...new Set(requested.roles)].filter((name) => current.roles.includes(name) === present),
  permissions: [...new Set(requested.permissions)].filter((name) => current.permissions.includes(name) === present),
})
