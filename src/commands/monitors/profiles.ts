import { Args } from '@oclif/core'
import { SvcCommand } from '../../cli/base.ts'
import { Fault } from '../../core/errors.ts'
import { didYouMean } from '../../core/suggest.ts'

export default class Profiles extends SvcCommand {
  static override summary = 'List the profiles that come with svc, or the parameters of one'
  static override examples = ['<%= config.bin %> monitors profiles', '<%= config.bin %> monitors profiles vantage']
  static override args = {
    profile: Args.string({
      name: 'PROFILE',
      description: 'A profile, for its parameters and monitors',
      ignoreStdin: true,
    }),
  }

  protected async perform(): Promise<undefined> {
    const { args, flags } = await this.parse(Profiles)
    const { describeProfiles } = await import('../../core/plan/index.ts')
    const profiles = await describeProfiles()
    const { renderProfiles, renderProfile } = await import('../../cli/render/monitors.ts')
    if (args.profile === undefined) {
      this.print(flags.json ? JSON.stringify(profiles) : renderProfiles(profiles, process.stdout))
      return
    }
    const profile = profiles.find(({ name }) => name === args.profile)
    if (!profile) {
      const names = profiles.map(({ name }) => name)
      const nearest = didYouMean(args.profile, names)
      throw new Fault('Usage', `unknown profile "${args.profile}"`, {
        hints: [...(nearest ? [`Did you mean ${nearest}?`] : []), `Profiles: ${names.join(' ')}`],
      })
    }
    this.print(flags.json ? JSON.stringify(profile) : renderProfile(profile, process.stdout))
  }
}
