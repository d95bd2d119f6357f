import { prints } from '../../cli/command/base.ts'
import { required, requiredArgument, text } from '../../cli/command/flags.ts'
import { StoreCommand, storeFlags, userNamed } from '../../cli/session/admin.ts'

export default class Unlock extends StoreCommand {
  static override summary = 'End the locks and limits after failed sign-ins'
  static override description =
    `Removes the counters of failed sign-ins with the user's name and e-mail, so that the right password works again from
every address. While somebody continues to guess, the limit is soon reached again: --from ADDRESS names the address from
which the user signs in, which the limit then no longer affects.`
  static override answers = { '': prints(async () => (await import('../../cli/accounts/lists.ts')).userOutcomes) }
  static override examples = [
    '<%= config.bin %> users unlock alice',
    '<%= config.bin %> users unlock alice --from 203.0.113.7 --reason "on call, at home"',
  ]
  static override args = {
    name: requiredArgument({ name: 'NAME', description: 'User name or e-mail', ignoreStdin: true }),
  }
  static override flags = {
    from: text('from')({ description: 'IP address (IPv6: its /64) from which the user may sign in during an attack' }),
    reason: text('reason')({ description: 'Reason, recorded in the audit log' }),
    ...storeFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Unlock)
    const name = required(args.name, 'NAME')
    await this.inStore(flags, signal, async ({ admin, by }) => {
      const { userName } = await userNamed(admin, name)
      const user = await admin.users.unlock(userName, flags.from, by)
      const from = flags.from === undefined ? '' : `, and may sign in from ${flags.from} during an attack`
      const sentence = `${user.userName} is no longer locked after failed sign-ins${from}`
      const { renderUser } = await import('../../cli/accounts/lists.ts')
      this.print(renderUser(user, admin.store, { ...this.output, sentence }))
    })
  }
}
