import { lists, prints } from '../../cli/command/base.ts'
import { argument, boolean } from '../../cli/command/flags.ts'
import { shellWord } from '../../cli/render/hints.ts'
import { changeRoles, isEmpty, takeAll } from '../../cli/roles/role-change.ts'
import { listsOf, RoleCommand, refuseBoth, roleFlags, userOf } from '../../cli/roles/role-command.ts'
import { Fault } from '../../core/errors.ts'

export default class Unassign extends RoleCommand {
  static override summary = 'Remove roles and permissions from a user'
  static override description =
    `Prints the changes, and all roles and permissions of the user afterwards. Roles that the user does
not have are ignored; a name that differs only in letter case is refused with exit code 9, and
nothing is changed. The last Admin cannot lose Admin.`
  static override answers = {
    '': prints(async () => (await import('../../cli/roles/lists.ts')).roleChanges),
    '--from-file': lists(async () => (await import('../../cli/roles/lists.ts')).fileRows),
  }
  static override examples = [
    '<%= config.bin %> roles unassign bob --role Admin --reason "left the team"',
    '<%= config.bin %> roles unassign bob --all --dry-run',
    '<%= config.bin %> roles unassign --from-file leavers.csv',
  ]
  static override args = {
    user: argument({ name: 'USER', description: 'User name or e-mail', ignoreStdin: true }),
  }
  static override flags = { ...roleFlags, all: boolean({ description: 'All roles and permissions of the user' }) }

  protected async perform(signal: AbortSignal): Promise<number | undefined> {
    const { args, flags } = await this.parse(Unassign)
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
    if (isEmpty(lists)) {
      throw new Fault('Usage', 'nothing to unassign: --role, --permission and --all are missing', {
        hints: [
          `svc roles unassign ${shellWord(userName)} --role ROLE`,
          `svc roles show ${shellWord(userName)}   shows the current roles`,
        ],
      })
    }
    return await this.one(flags, (asking) => changeRoles(asking, { action: 'unassign', userName, ...lists }), signal)
  }
}
