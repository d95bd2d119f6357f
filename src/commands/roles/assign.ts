import { lists, prints } from '../../cli/command/base.ts'
import { argument } from '../../cli/command/flags.ts'
import { shellWord } from '../../cli/render/hints.ts'
import { newNameFlag } from '../../cli/roles/new-names.ts'
import { changeRoles, isEmpty } from '../../cli/roles/role-change.ts'
import { listsOf, RoleCommand, refuseBoth, roleFlags, userOf } from '../../cli/roles/role-command.ts'
import { Fault } from '../../core/errors.ts'

export default class Assign extends RoleCommand {
  static override summary = 'Assign roles and permissions to a user'
  static override description =
    `Prints the changes, and all roles and permissions of the user afterwards. The caller must be Admin;
on this machine, everyone who can open the store is.

A file (--from-file) has the columns UserName, Action (assign or unassign; default: assign), Roles
and Permissions, both lists such as [Admin,Ops]. svc validates the whole file before any change.`
  static override answers = {
    '': prints(async () => (await import('../../cli/roles/lists.ts')).roleChanges),
    '--from-file': lists(async () => (await import('../../cli/roles/lists.ts')).fileRows),
  }
  static override examples = [
    '<%= config.bin %> roles assign alice --role Admin --reason "on call from May"',
    '<%= config.bin %> roles assign alice --role Ops --permission orders:read',
    '<%= config.bin %> roles assign --from-file changes.csv --dry-run',
  ]
  static override args = {
    user: argument({ name: 'USER', description: 'User name or e-mail', ignoreStdin: true }),
  }
  static override flags = {
    ...roleFlags,
    role: newNameFlag('role', 'Role (case-sensitive); repeatable'),
    permission: newNameFlag('permission', 'Permission (case-sensitive); repeatable'),
  }

  protected async perform(signal: AbortSignal): Promise<number | undefined> {
    const { args, flags } = await this.parse(Assign)
    const { 'from-file': file } = flags
    if (file !== undefined) {
      refuseBoth(flags, args.user)
      return await this.file({ ...flags, 'from-file': file }, 'assign', signal)
    }
    const userName = userOf(args.user)
    const lists = listsOf(flags)
    if (isEmpty(lists)) {
      throw new Fault('Usage', 'nothing to assign: --role and --permission are missing', {
        hints: [
          `svc roles assign ${shellWord(userName)} --role ROLE`,
          `svc roles show ${shellWord(userName)}   shows the current roles`,
        ],
      })
    }
    return await this.one(flags, (asking) => changeRoles(asking, { action: 'assign', userName, ...lists }), signal)
  }
}
