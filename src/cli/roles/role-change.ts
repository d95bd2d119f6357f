import { Fault } from '../../core/base/errors.ts'
import { adminWarning, looksLikeAdmin, otherCase, sameExceptCase } from '../../core/base/names.ts'
import { didYouMean } from '../../core/base/suggest.ts'
import {
  type AssignRoles,
  type AssignRolesResponse,
  changesRequest,
  expiresKey,
  extensionOnly,
  type GrantFacts,
  grantsRequest,
  neverExpires,
  otherCaseCode,
  permissionMistake,
  permissionsBefore,
  readGrants,
  rolesBefore,
} from '../../core/protocol/index.ts'
import type { Call, Service } from '../../core/protocol/service/service.ts'
import { shellWord } from '../render/hints.ts'
import { moment } from '../render/table.ts'
import type { CommandSession } from '../session/session.ts'
import { unknownUser } from '../session/unknown-user.ts'

export type Lists = { readonly roles: readonly string[]; readonly permissions: readonly string[] }
export type RoleChange = Lists & {
  readonly action: 'assign' | 'unassign'
  readonly userName: string
  /** When an assignment ends, as Meta has it (O8): an instant, a duration, or `never`. Undefined: ends stay as they are. */
  readonly expires?: string | undefined
}
export type RoleChanged = {
  readonly action: RoleChange['action'] | 'extend'
  readonly userName: string
  /** The roles and permissions that the change granted or removed. */
  readonly changed: Lists
  /** The requested roles and permissions that the change did not affect. */
  readonly unchanged: Lists
  /** All roles and permissions after the change, oldest first. With `dryRun`, those before it. */
  readonly all: Lists
  readonly dryRun: boolean
  /**
   * The facts about the grants behind `all` that end, or were asked about. Undefined where the server did not report
   * them.
   */
  readonly grants?: readonly GrantFacts[] | undefined
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

/** The roles and permissions after a request, and what the server says besides. */
type RoleAnswer = Lists & {
  readonly before?: Lists | undefined
  readonly grants?: readonly GrantFacts[] | undefined
  /** The end that the server repeats. */
  readonly expires?: string | undefined
}

/** The user's roles and permissions, with what is known of the grants. `grants` is undefined for servers without ends. */
export async function showGrants(
  asking: Pick<Asking, 'session' | 'call'>,
  userName: string,
): Promise<Lists & { readonly grants: readonly GrantFacts[] | undefined }> {
  const { key, value } = grantsRequest
  const request = { UserName: userName, Roles: [], Permissions: [], Meta: { [key]: value } }
  const { roles, permissions, grants } = await ask(asking, 'assignRoles', request)
  return { roles, permissions, grants }
}

/** The user's roles and permissions. An assignment of nothing returns them (O3), so this works with any server. */
export async function showRoles(asking: Pick<Asking, 'session' | 'call'>, userName: string): Promise<Lists> {
  const { roles, permissions } = await ask(asking, 'assignRoles', { UserName: userName, Roles: [], Permissions: [] })
  return { roles, permissions }
}

/**
 * Makes one change and derives what it changed from the lists before and after. Refuses in advance to unassign `admin`
 * from a user who has `Admin`: exit code 0 would suggest that the rights are gone.
 */
export async function changeRoles(asking: Asking, change: RoleChange): Promise<RoleChanged> {
  const isAboutEnds = change.expires !== undefined
  if (!asking.dryRun && !isAboutEnds && answersWithBefore(asking.session)) return await changeAtOnce(asking, change)
  const before = await (isAboutEnds ? showGrants : showRoles)(asking, change.userName)
  if (change.action === 'unassign') refuseOtherCase(change, before)
  // Before the change: after it, a mistyped role is one that somebody holds.
  const notes = await notesOn(asking, change, before)
  const after = asking.dryRun ? before : await ask(asking, operationOf(change), requestOf(asking, change))
  return await described(asking, change, before, after, notes)
}

/** Whether the server said at the sign-in that it answers a change with the lists before it (O8). */
const answersWithBefore = ({ target }: CommandSession): boolean =>
  target.kind === 'server' && target.profile?.roleChangesInOneRequest === true

/** Makes a change in one request. The server compares letter case in the transaction of the change. */
async function changeAtOnce(asking: Asking, change: RoleChange): Promise<RoleChanged> {
  const { key, value } = changesRequest
  try {
    const after = await ask(asking, operationOf(change), requestOf(asking, change, { [key]: value }))
    if (after.before)
      return await described(asking, change, after.before, after, await notesOn(asking, change, after.before))
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
  const end =
    change.expires === undefined ? {} : { [expiresKey]: change.expires, [grantsRequest.key]: grantsRequest.value }
  const meta = { ...(reason === undefined ? {} : { reason }), ...end, ...more }
  return {
    UserName: change.userName,
    Roles: change.roles,
    Permissions: change.permissions,
    ...(Object.keys(meta).length === 0 ? {} : { Meta: meta }),
  }
}

/** The change in terms of the lists before and after it. Takes back what has no end although it should have one. */
async function described(
  asking: Asking,
  change: RoleChange,
  before: RoleAnswer,
  after: RoleAnswer,
  notes: readonly string[],
): Promise<RoleChanged> {
  const { dryRun, session } = asking
  const { action, userName } = change
  const granted = changedBy(change, before)
  if (!dryRun && hasEnd(change) && after.expires !== change.expires) throw await takeBack(asking, change, granted)
  if (!dryRun) confirm(change, after, session.label)
  const { roles, permissions, grants } = after
  const moved = movedEnds(change, before, dryRun ? undefined : after)
  const changed = {
    roles: [...granted.roles, ...moved.roles],
    permissions: [...granted.permissions, ...moved.permissions],
  }
  const unchanged = without(change, changed)
  const all = { roles, permissions }
  const more = [...endNotes(change, after), ...limitNotes(change, before)]
  return { action, userName, dryRun, notes: [...notes, ...more], changed, unchanged, all, grants }
}

/** The roles and permissions that the user has already and that get another end. `after`: undefined in a dry run. */
function movedEnds(change: RoleChange, before: RoleAnswer, after: RoleAnswer | undefined): Lists {
  const { expires } = change
  const moves = (kind: GrantFacts['kind'], name: string): boolean => {
    const end = (answer: RoleAnswer) =>
      answer.grants?.find((grant) => grant.kind === kind && grant.name === name)?.endsAt
    return after ? end(before) !== end(after) : expires !== neverExpires || end(before) !== undefined
  }
  if (expires === undefined || !before.grants) return { roles: [], permissions: [] }
  const { roles, permissions } = within(change, before)
  return {
    roles: roles.filter((name) => moves('role', name)),
    permissions: permissions.filter((name) => moves('permission', name)),
  }
}

/** Notes on permanent roles that get an end: somebody may have meant to grant them in addition. */
function limitNotes(change: RoleChange, before: RoleAnswer): readonly string[] {
  if (!hasEnd(change) || !before.grants) return []
  const ends = before.grants.filter(({ endsAt }) => endsAt !== undefined)
  const isPermanent = (kind: GrantFacts['kind'], name: string): boolean =>
    !ends.some((grant) => grant.kind === kind && grant.name === name)
  const { roles, permissions } = within(change, before)
  return [
    ...roles.filter((name) => isPermanent('role', name)),
    ...permissions.filter((name) => isPermanent('permission', name)),
  ].map((name) => `until now, ${change.userName} had "${name}" permanently; --permanent removes the end again.`)
}

const hasEnd = ({ expires }: RoleChange): boolean => expires !== undefined && expires !== neverExpires

/** Notes on ends that an assignment without an end leaves alone. */
const endNotes = ({ action, userName, expires }: RoleChange, { grants = [] }: RoleAnswer): readonly string[] =>
  action === 'unassign' || expires !== undefined
    ? []
    : grants.flatMap(({ name, endsAt }) =>
        endsAt === undefined
          ? []
          : [`"${name}" still ends for ${userName} at ${moment(new Date(endsAt))}; --permanent removes the end.`],
      )

/** Milliseconds for taking a grant back, whatever the time limit of the command. */
const takeBackMs = 30_000

/** The error for a server that grants without an end (O8), after the grants that it made have been taken back. */
async function takeBack(asking: Asking, change: RoleChange, granted: Lists): Promise<Fault> {
  const { session, call } = asking
  const { userName } = change
  const name = shellWord(userName)
  const names = [...granted.roles, ...granted.permissions].map((one) => `"${one}"`).join(', ')
  const reason = `${session.label} did not confirm the end`
  if (isEmpty(granted)) {
    return new Fault('NotImplemented', `${reason}: ${userName} keeps the roles as they were, and nothing ends`, {
      hints: ['This server does not support roles that end.'],
    })
  }
  try {
    // Not even an interruption of the command may leave the grant without its end.
    const own = { ...call, signal: AbortSignal.timeout(takeBackMs) }
    const request = { UserName: userName, Roles: granted.roles, Permissions: granted.permissions }
    const after = await ask({ session, call: own }, 'unAssignRoles', {
      ...request,
      Meta: { reason: 'svc: the server did not confirm the end' },
    })
    if (!isEmpty(within(granted, after))) throw new Fault('UnreadableAnswer', 'its lists still contain them')
  } catch (error) {
    const flags = [
      ...granted.roles.map((one) => `--role ${shellWord(one)}`),
      ...granted.permissions.map((one) => `--permission ${shellWord(one)}`),
    ].join(' ')
    const why = error instanceof Fault ? error.message : String(error)
    return new Fault('NotImplemented', `${reason}, and ${names} could not be taken back (${why})`, {
      hints: [`${userName} has it permanently. To remove it: svc roles unassign ${name} ${flags}`],
      cause: error,
    })
  }
  return new Fault('NotImplemented', `${reason}, so svc took ${names} back from ${userName}`, {
    hints: ['This server does not support roles that end.', 'Without an end: omit --for and --until.'],
  })
}

/**
 * Moves the end of roles and permissions that the user has for a time. `extension`: how much later, or the new end.
 * Throws Fault for what is not held, is permanent, or would end no later.
 */
export async function extendRoles(
  asking: Asking,
  { userName, ...lists }: Pick<RoleChange, 'userName' | 'roles' | 'permissions'>,
  extension: { readonly byMs: number } | { readonly until: string },
): Promise<RoleChanged> {
  const { grants, ...before } = await showGrants(asking, userName)
  if (!grants) throw new Fault('NotImplemented', `${asking.session.label} does not support roles that end`)
  const ends = [
    ...lists.roles.map((name) => endOf(grants, before.roles, 'role', name, userName)),
    ...lists.permissions.map((name) => endOf(grants, before.permissions, 'permission', name, userName)),
  ]
  const [first = 0] = ends
  if ('byMs' in extension && ends.some((end) => end !== first)) {
    throw new Fault('Usage', 'these roles end at different times', {
      hints: ['Extend one at a time, or give all of them the same end: --until TIME'],
    })
  }
  const expires = 'until' in extension ? extension.until : new Date(first + extension.byMs).toISOString()
  const change: RoleChange = { action: 'assign', userName, ...lists, expires }
  const more = { [extensionOnly.key]: extensionOnly.value }
  const after: RoleAnswer = asking.dryRun
    ? { ...before, grants }
    : await ask(asking, 'assignRoles', requestOf(asking, change, more))
  if (!asking.dryRun && after.expires !== expires) {
    throw new Fault('UnreadableAnswer', `${asking.session.label} did not confirm the new end`, {
      hints: [`svc roles show ${shellWord(userName)}   shows the current ends`],
    })
  }
  const { roles, permissions } = after
  const facts = { action: 'extend', userName, dryRun: asking.dryRun, notes: [], grants: after.grants } as const
  return { ...facts, changed: lists, unchanged: { roles: [], permissions: [] }, all: { roles, permissions } }
}

/** The end of a grant, in milliseconds since 1970. */
function endOf(
  grants: readonly GrantFacts[],
  names: readonly string[],
  kind: GrantFacts['kind'],
  name: string,
  userName: string,
): number {
  const end = grants.find((grant) => grant.kind === kind && grant.name === name)?.endsAt
  if (end !== undefined) return end
  const isHeld = names.includes(name)
  const what = isHeld
    ? `has the ${kind} "${name}" permanently: there is no end to extend`
    : `does not have the ${kind} "${name}": it has ended, or was never assigned`
  throw new Fault('NotFound', `${userName} ${what}`, {
    hints: isHeld ? [] : [`svc roles assign ${shellWord(userName)} --${kind} ${shellWord(name)} --for 2h`],
  })
}

/** Removes own roles and permissions of the caller. */
export async function giveBackRoles(asking: Asking, lists: Lists, userName: string): Promise<RoleChanged> {
  const { session, call, reason } = asking
  const { key, value } = changesRequest
  const Meta = { [key]: value, ...(reason === undefined ? {} : { reason }) }
  const { roles, permissions } = lists
  const after = readAnswer(await session.service.giveBackRoles({ Roles: roles, Permissions: permissions, Meta }, call))
  const change: RoleChange = { action: 'unassign', userName, ...lists }
  return await described(asking, change, after.before ?? lists, after, [])
}

/** The roles and permissions that a change really changes, for a user with the lists `before`. */
const changedBy = (change: RoleChange, before: Lists): Lists =>
  change.action === 'assign' ? without(change, before) : within(change, before)

const notesOn = async (asking: Asking, change: RoleChange, before: Lists): Promise<readonly string[]> =>
  change.action === 'assign' ? await slips(changedBy(change, before), before, asking, change.userName) : []

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
): Promise<RoleAnswer> {
  let response: AssignRolesResponse
  try {
    response = await session.service[operation](request, call)
  } catch (error) {
    if (error instanceof Fault && error.fault === 'NotFound')
      throw await unknownUser(error, request.UserName ?? '', session)
    throw error
  }
  return readAnswer(response)
}

function readAnswer({ AllRoles = [], AllPermissions = [], Meta = {} }: AssignRolesResponse): RoleAnswer {
  const [roles, permissions] = [namesIn(Meta[rolesBefore]), namesIn(Meta[permissionsBefore])]
  const before = roles && permissions && { roles, permissions }
  return {
    roles: AllRoles,
    permissions: AllPermissions,
    before,
    grants: readGrants(Meta[grantsRequest.key]),
    expires: Meta[expiresKey],
  }
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
async function slips(changes: Lists, current: Lists, asking: Asking, userName: string): Promise<readonly string[]> {
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
      asking,
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
  { session, call }: Asking,
  userName: string,
): Promise<readonly string[]> {
  const usual = ['Admin', ...current.roles]
  const notes = requested.map(async (role) => {
    // Short names such as R1 and R2 differ on purpose.
    if (usual.includes(role) || role.length < 4) return []
    const { runtime, service } = session
    // Roles: those of others, where nobody has this one. A name that is refused here is refused by the change, too.
    const answer = runtime && (await service.roleHolders({ Role: role, Take: 1 }, call).catch(() => undefined))
    const stored = answer?.Roles
    const isHeld = answer !== undefined && stored === undefined
    const nearest = isHeld ? undefined : didYouMean(role, [...new Set([...usual, ...(stored ?? [])])])
    if (nearest === undefined) return []
    const fact = stored && stored.length < maxRoleNames ? 'is not a role of any user' : `is a new role for ${userName}`
    return [`"${role}" ${fact}; did you mean "${nearest}"?`]
  })
  return (await Promise.all(notes)).flat()
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
