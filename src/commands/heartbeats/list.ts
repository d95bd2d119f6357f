import { lists } from '../../cli/command/base.ts'
import { StoreCommand, storeFlags } from '../../cli/session/admin.ts'

export default class List extends StoreCommand {
  static override summary = 'List the agents that have reported, with their last heartbeat'
  static override answers = { '': lists(async () => (await import('../../cli/heartbeats/lists.ts')).heartbeats) }
  static override examples = ['<%= config.bin %> heartbeats list', '<%= config.bin %> heartbeats list --json']
  static override flags = storeFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(List)
    await this.inStore(flags, signal, async ({ admin }) => {
      const { heartbeatRow, heartbeats } = await import('../../cli/heartbeats/lists.ts')
      const now = this.io.clock.now()
      const rows = (await admin.heartbeats.list()).map((heartbeat) => heartbeatRow(heartbeat, now))
      this.printList(heartbeats.render(rows, { store: admin.store }, this.output))
    })
  }
}
