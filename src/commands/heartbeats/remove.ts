import { orNearest, StoreCommand, storeFlags } from '../../cli/admin.ts'
import { argument, required, text } from '../../cli/flags.ts'

export default class Remove extends StoreCommand {
  static override summary = 'Forget an agent that is gone for good, so that its silence is no finding'
  static override description = 'One that reports again is there again.'
  static override examples = ['<%= config.bin %> heartbeats remove agent-7 --reason "scrapped"']
  static override args = {
    name: argument({ name: 'NAME', description: 'What the agent is called', ignoreStdin: true }),
  }
  static override flags = { reason: text('reason')({ description: 'Why: stands in the audit' }), ...storeFlags }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Remove)
    const name = required(args.name, 'NAME')
    await this.inStore(flags, signal, async ({ admin, by }) => {
      await orNearest(admin.heartbeats.remove(name, by), name, {
        message: `no heartbeat of "${name}" is kept`,
        near: admin.heartbeats.near,
        hint: () => 'svc heartbeats list shows the agents that have reported.',
      })
      const sentence = `${name} is forgotten until it reports again`
      const { renderDone } = await import('../../cli/render/details.ts')
      this.print(renderDone(name, admin.store, { json: flags.json, screen: process.stdout, sentence, word: 'removed' }))
    })
  }
}
