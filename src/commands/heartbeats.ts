import { lists, prints } from '../cli/command/base.ts'
import { required, requiredArgument } from '../cli/command/flags.ts'
import { changeFlags, orNearest, StoreCommand, storeFlags } from '../cli/session/admin.ts'

const load = () => import('../cli/heartbeats/lists.ts')

export class HeartbeatsList extends StoreCommand {
  static override summary = 'List the agents that have reported, with their last heartbeat'
  static override answers = { '': lists(async () => (await load()).heartbeats) }
  static override examples = ['<%= config.bin %> heartbeats list', '<%= config.bin %> heartbeats list --json']
  static override flags = storeFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(HeartbeatsList)
    await this.inStore(flags, signal, async ({ admin }) => {
      const { heartbeatRow, heartbeats } = await load()
      const now = this.io.clock.now()
      const rows = (await admin.heartbeats.list()).map((heartbeat) => heartbeatRow(heartbeat, now))
      this.printList(heartbeats.render(rows, { store: admin.store }, this.output))
    })
  }
}

export class HeartbeatsRemove extends StoreCommand {
  static override summary = 'Delete an agent that no longer exists, so that svc does not report its silence'
  static override description = 'An agent that reports again is added again.'
  static override answers = { '': prints(async () => (await load()).removedHeartbeats) }
  static override examples = ['<%= config.bin %> heartbeats remove agent-7 --reason "decommissioned"']
  static override args = { name: requiredArgument('NAME', 'Name of the agent') }
  static override flags = changeFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(HeartbeatsRemove)
    const name = required(args.name, 'NAME')
    await this.inStore(flags, signal, async ({ admin, by }) => {
      await orNearest(admin.heartbeats.remove(name, by), name, {
        message: `there is no heartbeat of "${name}"`,
        near: admin.heartbeats.near,
        hint: () => 'svc heartbeats list shows the agents that have reported.',
      })
      const sentence = `${name} is deleted until it reports again`
      const { renderDone } = await import('../cli/render/done.ts')
      const { removedHeartbeats } = await load()
      const document = (): string => removedHeartbeats.text({ store: admin.store }, [{ name, removed: true }])
      this.printList(renderDone(name, admin.store, { ...this.output, sentence, word: 'removed', document }))
    })
  }
}
