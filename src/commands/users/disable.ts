import { prints } from '../../cli/command/base.ts'
import { required, requiredArgument, text } from '../../cli/command/flags.ts'
import { StoreCommand, storeFlags, userNamed } from '../../cli/session/admin.ts'

export default class Disable extends StoreCommand {
  static override summary = 'Disable a user; takes effect immediately'
  static override answers = { '': prints(async () => (await import('../../cli/accounts/lists.ts')).userOutcomes) }
  static override examples = ['<%= config.bin %> users disable bob --reason "on leave"']
  static override args = {
    name: requiredArgument({ name: 'NAME', description: 'User name or e-mail', ignoreStdin: true }),
  }
  static override flags = {
    reason: text('reason')({ description: 'Reason, recorded in the audit log' }),
    ...storeFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Disable)
    const name = required(args.name, 'NAME')
    await this.inStore(flags, signal, async ({ admin, by }) => {
      const before = await userNamed(admin, name)
      const changed = !before.disabled
      const user = changed ? await admin.users.disable(before.userName, by) : before
      const sentence = changed
        ? `${user.userName} is disabled: sign-in, sessions, tokens and keys no longer work`
        : `${user.userName}: unchanged`
      const { renderUser } = await import('../../cli/accounts/lists.ts')
      this.print(renderUser(user, admin.store, { ...this.output, sentence, changed }))
    })
  }
}
