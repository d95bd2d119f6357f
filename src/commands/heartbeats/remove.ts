import { prints } from '../../cli/command/base.ts'
import { required, requiredArgument, text } from '../../cli/command/flags.ts'
import { orNearest, StoreCommand, storeFlags } from '../../cli/session/admin.ts'

export default class Remove extends StoreCommand {
  static override summary = 'Delete an agent that is gone, so that its missing heartbeats are not reported'
  static override description = 'An agent that reports again is listed again.'
  static override answers = {
    '': prints(async () => (await import('../../cli/heartbeats/lists.ts')).removedHeartbeats),
  }
  static override examples = ['<%= config.bin %> heartbeats remove agent-7 --reason "scrapped"']
  static override args = {
    name: requiredArgument({ name: 'NAME', description: 'Name of the agent', ignoreStdin: true }),
  }
  static override flags = {
    reason: text('reason')({ description: 'Reason, recorded in the audit log' }),
    ...storeFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Remove)
    const name = required(args.name, 'NAME')
    await this.inStore(flags, signal, async ({ admin, by }) => {
      await orNearest(admin.heartbeats.remove(name, by), name, {
        message: `there is no heartbeat of "${name}"`,
        near: admin.heartbeats.near,
        hint: () => 'svc heartbeats list shows the agents that have reported.',
      })
      const sentence = `${name} is deleted until it reports again`
      const { renderDone } = await import('../../cli/render/done.ts')
      const { removedHeartbeats } = await import('../../cli/heartbeats/lists.ts')
      const document = (): string => removedHeartbeats.text({ store: admin.store }, [{ name, removed: true }])
      this.print(renderDone(name, admin.store, { ...this.output, sentence, word: 'removed', document }))
    })
  }
}
