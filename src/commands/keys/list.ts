import { lists } from '../../cli/command/base.ts'
import { StoreCommand, storeFlags } from '../../cli/session/admin.ts'

export default class List extends StoreCommand {
  static override summary = 'List the keys, without their secrets'
  static override answers = { '': lists(async () => (await import('../../cli/accounts/lists.ts')).keys) }
  static override examples = ['<%= config.bin %> keys list', '<%= config.bin %> keys list --json']
  static override flags = storeFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(List)
    await this.inStore(flags, signal, async ({ admin }) => {
      const { keyRow, keys } = await import('../../cli/accounts/lists.ts')
      const now = this.io.clock.now()
      const rows = (await admin.keys.list()).map((key) => keyRow(key, now))
      this.printList(keys.render(rows, { store: admin.store }, this.output))
    })
  }
}
