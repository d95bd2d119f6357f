import { prints } from '../../cli/command/base.ts'
import { required, requiredArgument } from '../../cli/command/flags.ts'
import { StoreCommand, storeFlags, userNamed } from '../../cli/session/admin.ts'

export default class Show extends StoreCommand {
  static override summary = 'Show one user of the store of this machine'
  static override answers = { '': prints(async () => (await import('../../cli/accounts/lists.ts')).users) }
  static override examples = ['<%= config.bin %> users show alice', '<%= config.bin %> users show alice@example.com']
  static override args = {
    name: requiredArgument({ name: 'NAME', description: 'User name or e-mail', ignoreStdin: true }),
  }
  static override flags = storeFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Show)
    const name = required(args.name, 'NAME')
    await this.inStore(flags, signal, async ({ admin }) => {
      const user = await userNamed(admin, name)
      const { renderUser } = await import('../../cli/accounts/lists.ts')
      this.print(renderUser(user, admin.store, this.output))
    })
  }
}
