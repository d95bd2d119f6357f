import { lists, prints } from '../cli/command/base.ts'
import { boolean, connectionFlags, required, requiredArgument } from '../cli/command/flags.ts'
import { AdminCommand, changeFlags, orNearest } from '../cli/session/admin.ts'
import { configuration } from '../cli/session/session.ts'
import { Fault } from '../core/base/errors.ts'
import { sanitizeLine } from '../core/base/sanitize.ts'

const load = () => import('../cli/heartbeats/lists.ts')

export class HeartbeatsList extends AdminCommand {
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
    ...connectionFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(HeartbeatsList)
    if (flags.verbose && (await this.sayTarget(flags)).kind === 'server') {
      throw new Fault('Usage', '--verbose reads the svc.yaml of this machine, and cannot be combined with a server', {
        hints: ['At the server: svc heartbeats list', 'On this machine: svc heartbeats list -v --local'],
      })
    }
    await this.administer(flags, signal, async ({ service, call, store }) => {
      const [{ heartbeatRow, heartbeats }, { allPages }] = await Promise.all([
        load(),
        import('../cli/accounts/lists.ts'),
      ])
      const now = this.io.clock.now()
      const entries = await allPages(
        async (After) => (await service.getHeartbeats({ After }, call)).Heartbeats ?? [],
        ({ Name }) => Name,
      )
      const rows = entries.map((entry) => heartbeatRow(entry, now))
      this.printList(heartbeats.render(rows, { store }, this.output))
      if (!flags.verbose) return
      const config = await configuration(flags, this.io.env, { tolerant: 'entries' })
      const { heartbeatTimes } = await import('../cli/monitors/next-times.ts')
      for (const line of heartbeatTimes(config, now.getTime())) this.say(sanitizeLine(line))
    })
  }
}

export class HeartbeatsRemove extends AdminCommand {
  static override summary = 'Delete an agent that no longer exists, so that svc does not report its silence'
  static override description = 'An agent that reports again is added again.'
  static override answers = { '': prints(async () => (await load()).removedHeartbeats) }
  static override examples = ['<%= config.bin %> heartbeats remove agent-7 --reason "decommissioned"']
  static override args = { name: requiredArgument('NAME', 'Name of the agent') }
  static override flags = changeFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(HeartbeatsRemove)
    const name = required(args.name, 'NAME')
    await this.administer(flags, signal, async ({ service, call, store }) => {
      await orNearest(service.forgetHeartbeat({ Name: name, Reason: flags.reason }, call), name, {
        message: `there is no heartbeat of "${name}"`,
        near: async (Like) =>
          ((await service.getHeartbeats({ Like }, call)).Heartbeats ?? []).map(({ Name = '' }) => Name),
        hint: () => 'svc heartbeats list shows the agents that have reported.',
      })
      const sentence = `${name} is deleted until it reports again`
      const { renderDone } = await import('../cli/render/done.ts')
      const { removedHeartbeats } = await load()
      const document = (): string => removedHeartbeats.text({ store }, [{ name, removed: true }])
      this.printList(renderDone(name, store, { ...this.output, sentence, word: 'removed', document }))
    })
  }
}
