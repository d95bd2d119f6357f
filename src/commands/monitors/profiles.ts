import { lists, SvcCommand } from '../../cli/command/base.ts'
import { argument } from '../../cli/command/flags.ts'
import { rowNamed } from '../../cli/command/named-row.ts'
import { thisMachine } from '../../cli/io/process.ts'

export default class Profiles extends SvcCommand {
  static override summary = 'List the profiles that come with svc, or the parameters of one'
  static override answers = { '': lists(async () => (await import('../../cli/monitors/lists.ts')).monitorProfiles) }
  static override examples = ['<%= config.bin %> monitors profiles', '<%= config.bin %> monitors profiles vantage']
  static override args = {
    profile: argument({
      name: 'PROFILE',
      description: 'Profile whose parameters and monitors are shown',
      ignoreStdin: true,
    }),
  }

  protected async perform(): Promise<undefined> {
    const { args } = await this.parse(Profiles)
    const { describeProfiles } = await import('../../core/plan/index.ts')
    const profiles = await describeProfiles()
    if (args.profile === undefined) {
      const { monitorProfiles } = await import('../../cli/monitors/lists.ts')
      this.print(monitorProfiles.render(profiles, { target: thisMachine }, this.output))
      return
    }
    const profile = rowNamed(profiles, args.profile, 'profile')
    const { renderProfile } = await import('../../cli/monitors/lists.ts')
    this.print(renderProfile(profile, this.output))
  }
}
