import { StoreCommand, storeFlags } from '../../cli/admin.ts'

export default class List extends StoreCommand {
  static override summary = 'List the agents that have reported, with their last heartbeat'
  static override examples = ['<%= config.bin %> heartbeats list', '<%= config.bin %> heartbeats list --json']
  static override flags = storeFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(List)
    await this.inStore(flags, signal, async ({ admin }) => {
      const heartbeats = await admin.heartbeats.list()
      const now = new Date()
      const { heartbeatJson, renderHeartbeats } = await import('../../cli/render/heartbeats.ts')
      this.answer(
        flags.json,
        { store: admin.store, heartbeats: heartbeats.map((one) => heartbeatJson(one, now)) },
        renderHeartbeats(heartbeats, admin.store, now, process.stdout),
      )
    })
  }
}
