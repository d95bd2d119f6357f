import { Fault } from '../core/errors.ts'
import type { AssignRoles, AssignRolesResponse } from '../core/protocol/index.ts'
import type { Call, Service } from '../core/service.ts'
import { didYouMean } from '../core/suggest.ts'
import type { Session } from './session.ts'

export type Lists = { readonly roles: readonly string[]; readonly permissions: readonly string[] }
export type RoleChange = Lists & { readonly action: 'assign' | 'unassign'; readonly userName: string }
export type RoleChanged = {
  readonly action: RoleChange['action']
  readonly userName: string
  /** What the change granted or took. */
  readonly changed: Lists
  /** What was asked for and was so already. */
  readonly unchanged: Lists
  /** All that the user holds after it, first granted first; with `dryRun` still before it. */
  readonly all: Lists
  readonly dryRun: boolean
  /** Things that look like a slip, one sentence each. */
  readonly notes: readonly string[]
}

export type Asking = {
  readonly session: Session
  readonly call: Call
  readonly dryRun: boolean
  readonly reason: string | undefined
}

export const isEmpty = ({ roles, permissions }: Lists): boolean => roles.length + permissions.length === 0

/** The user's lists: an assignment of nothing (O3), so it works at any server. */
export async function showRoles(asking: Pick<Asking, 'session' | 'call'>, userName: string): Promise<Lists> {
  return await ask(asking, 'assignRoles', { UserName: userName, Roles: [], Permissions: [] })
}

/**
 * Makes one change, and tells what it changed by the lists before and after. Unassigning `admin`
 * from who holds `Admin` is refused before anything is done: whoever reads exit 0 believes that the
 * rights are gone.
 */
export async function changeRoles(asking: Asking, change: RoleChange): Promise<RoleChanged> {
  const before = await showRoles(asking, change.userName)
  if (change.action === 'unassign') refuseOtherCase(change, before)
  const wanted = change.action === 'assign' ? without(change, before) : within(change, before)
  const base = {
    action: change.action,
    userName: change.userName,
    dryRun: asking.dryRun,
    notes: change.action === 'assign' ? slips(wanted, before) : [],
  }
  if (asking.dryRun) return { ...base, changed: wanted, unchanged: without(change, wanted), all: before }
  const operation = change.action === 'assign' ? 'assignRoles' : 'unAssignRoles'
  const after = await ask(asking, operation, {
    UserName: change.userName,
    Roles: change.roles,
    Permissions: change.permissions,
    ...(asking.reason === undefined ? {} : { Meta: { reason: asking.reason } }),
  })
  confirm(change, after, asking.session.label)
  return { ...base, changed: wanted, unchanged: without(change, wanted), all: after }
}

/** Takes all that the user holds. */
export async function takeAll(asking: Asking, userName: string): Promise<RoleChanged> {
  const held = await showRoles(asking, userName)
  return await changeRoles(asking, { action: 'unassign', userName, ...held })
}

type Changing = Extract<keyof Service, 'assignRoles' | 'unAssignRoles'>

async function ask({ session, call }: Pick<Asking, 'session' | 'call'>, operation: Changing, request: AssignRoles) {
  let response: AssignRolesResponse
  try {
    response = await session.service[operation](request, call)
  } catch (error) {
    if (error instanceof Fault && error.fault === 'NotFound') throw await unknownUser(error, request, session)
    throw error
  }
  return { roles: response.AllRoles ?? [], permissions: response.AllPermissions ?? [] }
}

/** On the wire the whole message is the name (O1). */
async function unknownUser(error: Fault, { UserName = '' }: AssignRoles, session: Session): Promise<Fault> {
  const { remoteStatus } = error.details
  const known = (await session.runtime?.admin?.users.near(UserName).catch(() => [])) ?? []
  const nearest = didYouMean(UserName, known)
  return new Fault('NotFound', `there is no user "${UserName}" ${at(session)}`, {
    ...(remoteStatus === undefined ? {} : { remoteStatus }),
    hints: [
      ...(nearest === undefined ? [] : [`Did you mean ${nearest}?`]),
      session.runtime
        ? 'svc users list shows the users; --server URL asks a server instead.'
        : 'A user is named by user name or e-mail.',
    ],
  })
}

const at = (session: Session): string => (session.runtime ? `in the store of ${session.label}` : `at ${session.label}`)

const same = (a: string, b: string): boolean => a.normalize('NFC').toLowerCase() === b.normalize('NFC').toLowerCase()

/** A held name that is the asked one but for its letter case. */
const otherCase = (asked: readonly string[], held: readonly string[]): readonly (readonly [string, string])[] =>
  asked.flatMap((name) => {
    const other = held.includes(name) ? undefined : held.find((each) => same(each, name))
    return other === undefined ? [] : [[name, other] as const]
  })

function refuseOtherCase(change: RoleChange, held: Lists): void {
  const kinds = [
    { word: 'role', flag: '--role', found: otherCase(change.roles, held.roles) },
    { word: 'permission', flag: '--permission', found: otherCase(change.permissions, held.permissions) },
  ]
  const [first] = kinds.flatMap(({ word, found }) => found.map(([name, other]) => ({ word, name, other })))
  if (!first) return
  const flags = kinds.flatMap(({ flag, found }) => found.map(([, other]) => `${flag} ${shellWord(other)}`)).join(' ')
  throw new Fault(
    'NotFound',
    `${change.userName} does not hold the ${first.word} "${first.name}", but holds "${first.other}"; nothing was changed`,
    {
      hints: [
        'Letter case counts in roles and permissions.',
        `svc roles unassign ${shellWord(change.userName)} ${flags}`,
      ],
    },
  )
}

/** What in an assignment looks like a slip; it is done all the same. */
function slips(wanted: Lists, held: Lists): readonly string[] {
  const all = [...wanted.roles, ...wanted.permissions]
  return [
    ...otherCase(wanted.roles, held.roles)
      .concat(otherCase(wanted.permissions, held.permissions))
      .map(([name, other]) => `"${name}" is another than "${other}", which is held already: letter case counts.`),
    ...wanted.roles
      .filter((role) => role !== 'Admin' && same(role, 'Admin') && !held.roles.includes('Admin'))
      .map((role) => `"${role}" is not "Admin", the role that may administer: letter case counts.`),
    ...all
      .filter((name) => name.includes(','))
      .map((name) => `"${name}" is one name with a comma in it; repeat the flag for several.`),
  ]
}

/** A server that answers success without having done it must not look like one that did. */
function confirm(change: RoleChange, after: Lists, label: string): void {
  const wrong = change.action === 'assign' ? without(change, after) : within(change, after)
  if (isEmpty(wrong)) return
  const said = [...wrong.roles, ...wrong.permissions].map((name) => `"${name}"`).join(', ')
  throw new Fault(
    'UnreadableAnswer',
    `${label} answered success, but its lists ${change.action === 'assign' ? 'lack' : 'still hold'} ${said}`,
    { hints: [`svc roles show ${shellWord(change.userName)} asks again.`] },
  )
}

const without = (asked: Lists, held: Lists): Lists => filtered(asked, held, false)
const within = (asked: Lists, held: Lists): Lists => filtered(asked, held, true)
const filtered = (asked: Lists, held: Lists, present: boolean): Lists => ({
  roles: [...new Set(asked.roles)].filter((name) => held.roles.includes(name) === present),
  permissions: [...new Set(asked.permissions)].filter((name) => held.permissions.includes(name) === present),
})

/** As a shell takes it. */
export const shellWord = (word: string): string =>
  /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
