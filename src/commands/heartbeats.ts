import { lists, prints } from '../cli/command/base.ts'
import { boolean, required, requiredArgument, text } from '../cli/command/flags.ts'
import { changeFlags, orNearest, StoreCommand, storeFlags } from '../cli/session/admin.ts'
import { configuration } from '../cli/session/session.ts'
import { sanitizeLine } from '../core/base/sanitize.ts'

const load = () => import('../cli/heartbeats/lists.ts')

export class HeartbeatsList extends StoreCommand {
  static override summary = 'List the agents that have reported, with their last heartbeat'
  static override description =
    `With --verbose, the next five times of each monitor with a schedule: in the svc.yaml of this machine follow on
standard error, with their offset and time zone.`
  static override answers = { '': lists(async () => (await load()).heartbeats) }
  static override examples = [
    '<%= config.bin %> heartbeats list',
    '<%= config.bin %> heartbeats list --json',
    '<%= config.bin %> heartbeats list -v',
  ]
  static override flags = {
    verbose: boolean({ char: 'v', description: 'Also print when the jobs of svc.yaml are due next' }),
    config: text('config')({ description: 'The svc.yaml with their schedules (SVC_CONFIG)' }),
    ...storeFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(HeartbeatsList)
    await this.inStore(flags, signal, async ({ admin }) => {
      const { heartbeatRow, heartbeats } = await load()
      const now = this.io.clock.now()
      const rows = (await admin.heartbeats.list()).map((heartbeat) => heartbeatRow(heartbeat, now))
      this.printList(heartbeats.render(rows, { store: admin.store }, this.output))
      if (!flags.verbose) return
      const config = await configuration(flags, this.io.env, { tolerant: 'entries' })
      const { heartbeatTimes } = await import('../cli/monitors/next-times.ts')
      for (const line of heartbeatTimes(config, now.getTime())) this.say(sanitizeLine(line))
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
