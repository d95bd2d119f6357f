import { lists, prints } from '../cli/command/base.ts'
import {
  boolean,
  connectionFlags,
  optionalArgument,
  reasonFlag,
  required,
  requiredArgument,
} from '../cli/command/flags.ts'
import { instantFlag, spanFlag } from '../cli/command/instant.ts'
import { shellWord } from '../cli/render/hints.ts'
import { newNameFlag } from '../cli/roles/new-names.ts'
import { changeRoles, extendRoles, giveBackRoles, isEmpty, showGrants, takeAll } from '../cli/roles/role-change.ts'
import { listsOf, OneRoleCommand, RoleCommand, refuseBoth, roleFlags, userOf } from '../cli/roles/role-command.ts'
import { type EndFlags, endFlags, expiresOf, permanentFlag } from '../cli/roles/role-end.ts'
import { AdminCommand, type AdminSession, orNearest, userFactsOf, usersNear } from '../cli/session/admin.ts'
import { localCall } from '../cli/session/session.ts'
import { TargetCommand } from '../cli/session/target-command.ts'
import { Fault } from '../core/base/errors.ts'
import { fromEntry } from '../core/protocol/service/facts.ts'
import type { PastHolder } from '../core/protocol/service/service.ts'

const userArgs = { user: requiredArgument('USER', 'User name or e-mail') }

const nothingTo = (action: 'assign' | 'unassign', flags: string, userName: string): Fault =>
  new Fault('Usage', `nothing to ${action}: ${flags} are missing`, {
    hints: [
      `svc roles ${action} ${shellWord(userName)} --role ROLE`,
      `svc roles show ${shellWord(userName)}   shows the current roles`,
    ],
  })

export class RolesAssign extends RoleCommand {
  static override summary = 'Assign roles and permissions to a user'
  static override description =
    `Prints the changes, and all roles and permissions of the user afterwards. The caller must have the role
Admin; on this machine, every account that can open the store may use this command.

With --for or --until, what is assigned ends by itself, also for tokens and sessions that exist. Without
them, what the user has for a time keeps its end; --permanent removes it. If a server does not confirm
the end, svc takes the roles back at once and exits with 9.

A file (--from-file) has the columns UserName, Action (assign or unassign; default: assign), Roles
and Permissions, both lists such as [Admin,Ops], and Expires, when the row ends: an instant such as
2026-11-28T18:00:00Z, a duration such as PT2H, or never. svc validates the whole file before any change.`
  static override examples = [
    '<%= config.bin %> roles assign alice --role Admin --reason "on call from May"',
    '<%= config.bin %> roles assign bob --role Deploy --for 2h --reason INC-1',
    '<%= config.bin %> roles assign bob --role Deploy --until 18:00',
    '<%= config.bin %> roles assign bob --role Deploy --permanent',
    '<%= config.bin %> roles assign alice --role Ops --permission orders:read',
    '<%= config.bin %> roles assign --from-file changes.csv --dry-run',
  ]
  static override flags = {
    ...roleFlags,
    role: newNameFlag('role', 'Role (case-sensitive); repeatable'),
    permission: newNameFlag('permission', 'Permission (case-sensitive); repeatable'),
    ...endFlags,
    permanent: permanentFlag,
  }

  protected async perform(signal: AbortSignal): Promise<number | undefined> {
    const { args, flags } = await this.parse(RolesAssign)
    const { 'from-file': file } = flags
    if (file !== undefined) {
      refuseBoth(flags, args.user)
      refuseEnds(flags)
      return await this.file({ ...flags, 'from-file': file }, 'assign', signal)
    }
    const userName = userOf(args.user)
    const lists = listsOf(flags)
    if (isEmpty(lists)) throw nothingTo('assign', '--role and --permission', userName)
    const expires = expiresOf(flags, this.io.clock.now())
    const change = { action: 'assign', userName, ...lists, expires } as const
    return await this.one(flags, (asking) => changeRoles(asking, change), signal)
  }
}

/** Refuses an end beside a file, whose rows have their own. */
function refuseEnds(flags: EndFlags): void {
  const flag = (['for', 'until', 'permanent'] as const).find(
    (name) => flags[name] !== undefined && flags[name] !== false,
  )
  if (flag === undefined) return
  throw new Fault('Usage', `--from-file and --${flag} cannot be combined`, {
    hints: ['Give the rows that end a column Expires: an instant such as 2026-11-28T18:00:00Z, or PT2H for two hours.'],
  })
}

export class RolesExtend extends OneRoleCommand {
  static override summary = 'Move the end of roles and permissions of a user'
  static override description =
    `Only for what the user has for a time, and only to a later end: what has ended must be assigned again.
--for counts from the end that it has now. A reason is required.`
  static override examples = [
    '<%= config.bin %> roles extend bob --role Deploy --for 1h --reason "INC-1 continues"',
    '<%= config.bin %> roles extend bob --role Deploy --until "2026-11-28 20:00" --reason INC-1',
  ]
  static override args = userArgs
  static override flags = {
    role: roleFlags.role,
    permission: roleFlags.permission,
    for: spanFlag('How much longer, from the present end', 'until'),
    until: endFlags.until,
    reason: reasonFlag,
    'dry-run': roleFlags['dry-run'],
    ...connectionFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(RolesExtend)
    const userName = userOf(args.user)
    const lists = listsOf(flags)
    const example = `svc roles extend ${shellWord(userName)} --role ROLE --for 1h --reason TEXT`
    const until = expiresOf({ until: flags.until }, this.io.clock.now())
    const extension = flags.for !== undefined ? { byMs: flags.for } : until !== undefined ? { until } : undefined
    if (isEmpty(lists)) throw missing('--role or --permission', example)
    if (!extension) throw missing('--for or --until', example)
    if (flags.reason === undefined) throw missing('--reason', example)
    return await this.one(flags, (asking) => extendRoles(asking, { userName, ...lists }, extension), signal)
  }
}

const missing = (what: string, example: string): Fault => new Fault('Usage', `${what} is missing`, { hints: [example] })

export class RolesGiveBack extends OneRoleCommand {
  static override summary = 'Remove a role of your own'
  static override description =
    `Acts at a server, as the signed-in user, who needs no other role for it. Roles that come from the claims of an
OpenID provider cannot be given back. The last Admin cannot lose Admin.`
  static override examples = [
    '<%= config.bin %> roles give-back Deploy --reason "INC-1 is solved"',
    '<%= config.bin %> roles give-back --permission orders:write',
  ]
  static override args = { role: optionalArgument('ROLE', 'Role (case-sensitive)') }
  static override flags = {
    permission: roleFlags.permission,
    reason: roleFlags.reason,
    ...connectionFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(RolesGiveBack)
    const lists = listsOf({ ...flags, role: args.role === undefined ? [] : [required(args.role, 'ROLE')] })
    if (isEmpty(lists)) throw missing('ROLE or --permission', 'svc roles give-back ROLE')
    return await this.one(
      flags,
      async (asking) => {
        const { session, call } = asking
        const { UserName = 'you' } = await session.service.authenticate({}, { ...call, verb: 'GET' })
        return await giveBackRoles(asking, lists, UserName)
      },
      signal,
    )
  }
}

const loadPast = () => import('../cli/accounts/audit-lists.ts')

export class RolesHolders extends AdminCommand {
  static override summary = 'List the users with a role, now or in the past'
  static override description =
    `With --at, svc reads from the audit who held the role then, and says from when on the audit can tell. Roles
from claims of an OpenID provider belong to a sign-in and are not in the audit.`
  static override answers = {
    '': lists(async () => (await import('../cli/accounts/lists.ts')).holders),
    '--at': lists(async () => (await loadPast()).pastHolders),
  }
  static override examples = [
    '<%= config.bin %> roles holders Admin',
    '<%= config.bin %> roles holders Admin --at 2026-11-01',
    '<%= config.bin %> roles holders Deploy --at 2026-11-28T02:30Z --json',
  ]
  static override args = { role: requiredArgument('ROLE', 'Role (case-sensitive)') }
  static override flags = {
    at: instantFlag('at')({ description: 'Who held the role at this time' }),
    ...connectionFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(RolesHolders)
    const role = required(args.role, 'ROLE')
    const { at } = flags
    await this.administer(flags, signal, async (admin) => {
      if (at !== undefined) return await this.past(admin, role, at, signal)
      const { service, call, store } = admin
      const { Users: first, Total: total = 0, Roles = [] } = await service.roleHolders({ Role: role }, call)
      if (total === 0) refuseOtherCase(role, Roles)
      const { holders, holdersHeadline, userPages } = await import('../cli/accounts/lists.ts')
      const page = async (After?: string) =>
        ((After === undefined ? first : (await service.roleHolders({ Role: role, After }, call)).Users) ?? []).map(
          userFactsOf,
        )
      const output = { ...this.output, total, headline: holdersHeadline(total, role) }
      await this.printParts(holders.parts(userPages(page), { store, role }, output), signal)
    })
  }

  private async past(
    { service, call, store }: AdminSession,
    role: string,
    at: Date,
    signal: AbortSignal,
  ): Promise<undefined> {
    const { userPages } = await import('../cli/accounts/lists.ts')
    const { Users: first, Total: total = 0, ...answer } = await service.roleHolders({ Role: role, At: at }, call)
    const { Roles = [], AnswersFrom: answersFrom = at, LinkedUsers = 0 } = answer
    if (total === 0) refuseOtherCase(role, Roles, at)
    const page = async (After?: string) => {
      const Users = After === undefined ? first : (await service.roleHolders({ Role: role, At: at, After }, call)).Users
      return (Users ?? []).map((one) => fromEntry(one) as PastHolder)
    }
    const { notCovered, pastHolders, pastHoldersHeadline } = await loadPast()
    const missing = notCovered(LinkedUsers)
    const around = { store, role, at: at.toISOString(), answersFrom, notCovered: missing ?? null }
    const output = { ...this.output, total, headline: pastHoldersHeadline(total, role, at) }
    await this.printParts(pastHolders.parts(userPages(page), around, output), signal)
    if (this.output.json) return
    this.say(`\nThe audit answers for times from ${answersFrom.toISOString()} on`)
    if (missing !== undefined) this.say(`Not covered: ${missing}`)
  }
}

export class RolesHistory extends AdminCommand {
  static override summary = "List the changes of a user's roles"
  static override description =
    `Lists, oldest first, when roles and permissions of the user changed, who changed them, until when and why. A
user who was removed is found by name.`
  static override answers = { '': lists(async () => (await loadPast()).roleHistory) }
  static override examples = ['<%= config.bin %> roles history alice', '<%= config.bin %> roles history bob --json']
  static override args = userArgs
  static override flags = connectionFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(RolesHistory)
    const userName = userOf(args.user)
    await this.administer(flags, signal, async ({ service, call, store }) => {
      const [{ auditOf, roleChange, roleHistory }, { holdingIn }, { allPages }] = await Promise.all([
        loadPast(),
        import('../core/store/audit/index.ts'),
        import('../cli/accounts/lists.ts'),
      ])
      const page = async (after = '0') =>
        (await service.roleHistory({ UserName: userName, AfterId: Number(after) }, call)).Entries ?? []
      const all = await orNearest(
        allPages(page, ({ Id }) => String(Id)),
        userName,
        {
          message: `the audit has no user "${userName}"`,
          near: (typed) => usersNear(service, typed, call),
          hint: () => 'svc users list shows the users.',
        },
      )
      const entries = all.map(auditOf)
      const changes = entries.map((entry) => roleChange(entry, holdingIn(entry.after)?.ends.role ?? new Map()))
      const name = entries.at(-1)?.target ?? userName
      this.printList(roleHistory.render(changes, { store, userName: name }, this.output))
    })
  }
}

/** Refuses a role in the wrong letter case: "nobody" would be a wrong answer for `admin` when there are Admins. */
function refuseOtherCase(role: string, roles: readonly string[], at?: Date): void {
  const other = roles.find((name) => name.toLowerCase() === role.toLowerCase())
  if (other === undefined) return
  const [has, have] = at ? ['had', 'had'] : ['has', 'have']
  const mistake = `no user ${has} the role "${role}", but some ${have} "${other}": role names are case-sensitive`
  const when = at ? ` --at ${at.toISOString()}` : ''
  throw new Fault('NotFound', mistake, { hints: [`svc roles holders ${shellWord(other)}${when}`] })
}

export class RolesShow extends TargetCommand {
  static override summary = 'Show the roles and permissions of a user'
  static override description =
    'Also until when, by whom and why each of them was assigned, as far as the server knows.'
  static override answers = { '': prints(async () => (await import('../cli/roles/lists.ts')).holdings) }
  static override examples = [
    '<%= config.bin %> roles show alice',
    '<%= config.bin %> roles show alice@example.com --server https://svc.example.com --json',
  ]
  static override args = userArgs
  static override flags = connectionFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(RolesShow)
    const userName = userOf(args.user)
    await this.inSession(flags, async (session, target) => {
      const holdings = await showGrants({ session, call: localCall(signal) }, userName)
      const { renderHoldings } = await import('../cli/roles/lists.ts')
      this.printList(renderHoldings({ userName, ...holdings }, target, this.output, this.io.clock.now()))
    })
  }
}

export class RolesUnassign extends RoleCommand {
  static override summary = 'Remove roles and permissions from a user'
  static override description =
    `Prints the changes, and all roles and permissions of the user afterwards. Roles that the user does
not have are ignored; a name that differs only in letter case is refused with exit code 9, and
nothing is changed. The last Admin cannot lose Admin.`
  static override examples = [
    '<%= config.bin %> roles unassign bob --role Admin --reason "left the team"',
    '<%= config.bin %> roles unassign bob --all --dry-run',
    '<%= config.bin %> roles unassign --from-file leavers.csv',
  ]
  static override flags = {
    ...roleFlags,
    all: boolean({ description: 'Remove all roles and permissions of the user' }),
  }

  protected async perform(signal: AbortSignal): Promise<number | undefined> {
    const { args, flags } = await this.parse(RolesUnassign)
    const { 'from-file': file } = flags
    const lists = listsOf(flags)
    if (flags.all && (!isEmpty(lists) || file !== undefined)) {
      const other = file !== undefined ? '--from-file' : lists.roles.length > 0 ? '--role' : '--permission'
      throw new Fault('Usage', `--all and ${other} cannot be combined`, { hints: ['Omit one of them.'] })
    }
    if (file !== undefined) {
      refuseBoth(flags, args.user)
      return await this.file({ ...flags, 'from-file': file }, 'unassign', signal)
    }
    const userName = userOf(args.user)
    if (flags.all) return await this.one(flags, (asking) => takeAll(asking, userName), signal)
    if (isEmpty(lists)) throw nothingTo('unassign', '--role, --permission and --all', userName)
    return await this.one(flags, (asking) => changeRoles(asking, { action: 'unassign', userName, ...lists }), signal)
  }
}
