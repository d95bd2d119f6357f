import { lists, prints } from '../cli/command/base.ts'
import { boolean, connectionFlags, required, requiredArgument } from '../cli/command/flags.ts'
import { shellWord } from '../cli/render/hints.ts'
import { newNameFlag } from '../cli/roles/new-names.ts'
import { changeRoles, isEmpty, showRoles, takeAll } from '../cli/roles/role-change.ts'
import { listsOf, RoleCommand, refuseBoth, roleFlags, userOf } from '../cli/roles/role-command.ts'
import { StoreCommand, storeFlags } from '../cli/session/admin.ts'
import { localCall } from '../cli/session/session.ts'
import { TargetCommand } from '../cli/session/target-command.ts'
import { Fault } from '../core/errors.ts'

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

A file (--from-file) has the columns UserName, Action (assign or unassign; default: assign), Roles
and Permissions, both lists such as [Admin,Ops]. svc validates the whole file before any change.`
  static override examples = [
    '<%= config.bin %> roles assign alice --role Admin --reason "on call from May"',
    '<%= config.bin %> roles assign alice --role Ops --permission orders:read',
    '<%= config.bin %> roles assign --from-file changes.csv --dry-run',
  ]
  static override flags = {
    ...roleFlags,
    role: newNameFlag('role', 'Role (case-sensitive); repeatable'),
    permission: newNameFlag('permission', 'Permission (case-sensitive); repeatable'),
  }

  protected async perform(signal: AbortSignal): Promise<number | undefined> {
    const { args, flags } = await this.parse(RolesAssign)
    const { 'from-file': file } = flags
    if (file !== undefined) {
      refuseBoth(flags, args.user)
      return await this.file({ ...flags, 'from-file': file }, 'assign', signal)
    }
    const userName = userOf(args.user)
    const lists = listsOf(flags)
    if (isEmpty(lists)) throw nothingTo('assign', '--role and --permission', userName)
    return await this.one(flags, (asking) => changeRoles(asking, { action: 'assign', userName, ...lists }), signal)
  }
}

export class RolesHolders extends StoreCommand {
  static override summary = 'List the users with a role in the store of this machine'
  static override answers = { '': lists(async () => (await import('../cli/accounts/lists.ts')).holders) }
  static override examples = ['<%= config.bin %> roles holders Admin']
  static override args = { role: requiredArgument('ROLE', 'Role (case-sensitive)') }
  static override flags = storeFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(RolesHolders)
    const role = required(args.role, 'ROLE')
    await this.inStore(flags, signal, async ({ admin }) => {
      const total = await admin.roles.count(role)
      if (total === 0) refuseOtherCase(role, await admin.roles.names())
      const { holders, holdersHeadline, userPages } = await import('../cli/accounts/lists.ts')
      const pages = userPages((after) => admin.roles.holders(role, after))
      const output = { ...this.output, total, headline: holdersHeadline(total, role) }
      await this.printParts(holders.parts(pages, { store: admin.store, role }, output), signal)
    })
  }
}

/** Refuses a role in the wrong letter case: "nobody" would be a wrong answer for `admin` when there are Admins. */
function refuseOtherCase(role: string, roles: readonly string[]): void {
  const other = roles.find((name) => name.toLowerCase() === role.toLowerCase())
  if (other === undefined) return
  const mistake = `no user has the role "${role}", but some have "${other}": role names are case-sensitive`
  throw new Fault('NotFound', mistake, { hints: [`svc roles holders ${shellWord(other)}`] })
}

export class RolesShow extends TargetCommand {
  static override summary = 'Show the roles and permissions of a user'
  static override answers = { '': prints(async () => (await import('../cli/roles/lists.ts')).holdings) }
  static override examples = [
    '<%= config.bin %> roles show alice',
    '<%= config.bin %> roles show alice@example.com --server https://svc.example.com --json',
  ]
  static override args = { user: requiredArgument('USER', 'User name or e-mail') }
  static override flags = connectionFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(RolesShow)
    const userName = userOf(args.user)
    await this.inSession(flags, async (session, target) => {
      const lists = await showRoles({ session, call: localCall(signal) }, userName)
      const { renderHoldings } = await import('../cli/roles/lists.ts')
      this.print(renderHoldings({ userName, ...lists }, target, this.output))
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
