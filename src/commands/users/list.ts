import { lists } from '../../cli/command/base.ts'
import { StoreCommand, storeFlags } from '../../cli/session/admin.ts'

export default class List extends StoreCommand {
  static override summary = 'List the users of the store of this machine'
  static override answers = { '': lists(async () => (await import('../../cli/accounts/lists.ts')).users) }
  static override examples = ['<%= config.bin %> users list', '<%= config.bin %> users list --json']
  static override flags = storeFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(List)
    await this.inStore(flags, signal, async ({ admin }) => {
      const users = await admin.users.list()
      const accounts = await import('../../cli/accounts/lists.ts')
      this.printList(accounts.users.render(users, { store: admin.store }, this.output))
    })
  }
}
