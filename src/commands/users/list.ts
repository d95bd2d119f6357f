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
      const [{ users }, { userPages }] = await Promise.all([
        import('../../cli/accounts/lists.ts'),
        import('../../cli/accounts/lists.ts'),
      ])
      const output = { ...this.output, total: await admin.users.count() }
      await this.printParts(users.parts(userPages(admin.users.list), { store: admin.store }, output), signal)
    })
  }
}
