import { lists, prints } from '../cli/command/base.ts'
import { argument, boolean, connectionFlags, required, requiredArgument, text } from '../cli/command/flags.ts'
import { spanFlag } from '../cli/command/instant.ts'
import { localCall } from '../cli/session/session.ts'
import { TargetCommand } from '../cli/session/target-command.ts'
import { orUsage, SilenceCommand } from '../cli/silences/silence-command.ts'
import { Fault } from '../core/base/errors.ts'
import { count } from '../core/base/format.ts'
import { sanitizeLine } from '../core/base/sanitize.ts'

const load = () => import('../cli/silences/lists.ts')
const answers = { '': prints(async () => (await load()).silences) }

export default class Silence extends SilenceCommand {
  static override summary = 'Silence notifications about monitors for a while'
  static override description =
    `Silences notifications and nothing else: states, health checks, their exit codes and metrics stay as they
are, and say until when and why they are silenced. What still stands when the silence ends is sent then;
recoveries are sent at any time to whoever knows of the fault. Monitors that fail because of a silenced
one are silenced, too, and so are monitors that are added later, if a pattern matches them. An Alertmanager in
notify: gets a silence of its own; exit code 10 means that one could not be made everywhere.

At a server, the caller needs the role Admin or the permission silence. The audit log records who
silenced what, and why. svc silence list shows what is silenced, and svc silence end ends it.`
  static override answers = answers
  static override examples = [
    "<%= config.bin %> silence 'Sql/*' --for 2h --reason 'patch night'",
    '<%= config.bin %> silence "postgres orders" "http shop" --until 04:00 --reason INC-7',
    "<%= config.bin %> silence '*' --for 30m --reason move --server https://svc.example.com",
  ]
  static override args = {
    monitors: argument({
      name: 'MONITOR',
      description: 'Monitors by name, with or without the type; * matches any characters: Sql/*',
      ignoreStdin: true,
      multiple: true,
    }),
  }
  static override flags = {
    for: spanFlag('How long, at most 30d'),
    until: text('until')({
      description: 'Until when: 04:00, "2026-11-29 04:00", 2026-11-29T04:00Z',
      helpValue: '<04:00|…>',
    }),
    reason: text('reason')({ description: 'Why (required), shown wherever the silence is' }),
    ...connectionFlags,
  }

  protected async perform(signal: AbortSignal): Promise<number | undefined> {
    const { args, flags } = await this.parse(Silence)
    const { monitors = [] } = args
    if (monitors.length === 0) {
      throw new Fault('Usage', 'MONITOR is missing: which monitors?', {
        hints: ["svc silence 'Sql/*' --for 2h --reason 'patch night'", 'svc silence list   shows what is silenced now'],
      })
    }
    const length = this.lengthOf(flags)
    const Reason = required(flags.reason, '--reason')
    return await this.inSession(
      flags,
      async (session, target) => {
        this.sayConfig(session)
        const { service } = session
        const request = { Monitors: monitors, Reason, ...length }
        const answer = await orUsage(service.silenceMonitors(request, localCall(signal)))
        const { monitorName, silenceRow, renderSilences } = await load()
        const { Silence: entry = {}, Covers = [], MoreMonitors, NotSilenced } = answer
        const row = silenceRow(entry, Covers.map(monitorName))
        this.printList(renderSilences([row], target, this.output, MoreMonitors))
        return await this.sayNotSilenced(NotSilenced)
      },
      { readsConfig: true, tolerant: true },
    )
  }
}

export class SilenceList extends TargetCommand {
  static override summary = 'List what is silenced and acknowledged'
  static override description =
    `With --verbose, the next five times of each entry of silences: in svc.yaml follow on standard error, with their
offset and time zone. Those of a server are in its own svc.yaml.`
  static override answers = { '': lists(async () => (await load()).silences) }
  static override examples = [
    '<%= config.bin %> silence list',
    '<%= config.bin %> silence list --json',
    '<%= config.bin %> silence list -v',
  ]
  static override flags = {
    verbose: boolean({ char: 'v', description: 'Also print when the silences of svc.yaml begin next' }),
    ...connectionFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(SilenceList)
    await this.inSession(
      flags,
      async ({ service, config }, target) => {
        const { Silences: entries = [], HiddenSilences: hidden } = await service.getSilences({}, localCall(signal))
        const { silenceRow, silences } = await load()
        this.printList(
          silences.render(
            entries.map((entry) => silenceRow(entry)),
            { target },
            this.output,
          ),
        )
        if (hidden !== undefined)
          this.say(`Note: ${count(hidden, 'more is', 'more are')} about types that you may not read`)
        if (!flags.verbose) return
        if (!config) return this.say('Note: svc monitors validate -v shows the next times on the machine of the server')
        const { silenceTimes } = await import('../cli/monitors/next-times.ts')
        for (const line of silenceTimes(config, this.io.clock.now().getTime())) this.say(sanitizeLine(line))
      },
      { readsConfig: true, tolerant: true },
    )
  }
}

export class SilenceEnd extends SilenceCommand {
  static override summary = 'End a silence or an acknowledgement before its time'
  static override description = 'What still stands is sent to the receivers then.'
  static override answers = answers
  static override examples = ['<%= config.bin %> silence end 1a2b3c4d']
  static override args = { id: requiredArgument('ID', 'Id that svc silence list shows') }
  static override flags = connectionFlags

  protected async perform(signal: AbortSignal): Promise<number | undefined> {
    const { args, flags } = await this.parse(SilenceEnd)
    const Id = required(args.id, 'ID')
    return await this.inSession(
      flags,
      async ({ service }, target) => {
        const { Silence: entry = {}, NotSilenced } = await service.endSilence({ Id }, localCall(signal))
        const { silenceRow, renderEnded } = await load()
        this.printList(renderEnded(silenceRow(entry), target, this.output))
        return await this.sayNotSilenced(NotSilenced)
      },
      { readsConfig: true, tolerant: true },
    )
  }
}
