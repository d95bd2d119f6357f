import { prints, SvcCommand } from '../../cli/command/base.ts'
import { argument, variable } from '../../cli/command/flags.ts'
import { readSettings } from '../../cli/session/session.ts'
import { Fault } from '../../core/errors.ts'

export default class ProfileShow extends SvcCommand {
  static override summary = 'Show a profile; without a name, the current one'
  static override answers = { '': prints(async () => (await import('../../cli/setup/lists.ts')).profiles) }
  static override examples = ['<%= config.bin %> profile show', '<%= config.bin %> profile show prod --json']
  static override args = { name: argument({ name: 'NAME', description: 'Name of the profile', ignoreStdin: true }) }

  protected async perform(): Promise<undefined> {
    const { args, flags } = await this.parse(ProfileShow)
    const { profileNamed } = await import('../../cli/settings/profiles.ts')
    const settings = await readSettings(this.io.env)
    const name = args.name ?? variable(this.io.env, 'SVC_PROFILE') ?? settings.current
    if (name === undefined) {
      throw new Fault('Usage', 'no profile is current: all commands act on this machine', {
        hints: ['svc profile list shows the profiles.'],
      })
    }
    const profile = await profileNamed(settings, name, 'svc profile show')
    const current = settings.current === profile.name
    if (flags.json) {
      const { profiles } = await import('../../cli/setup/lists.ts')
      this.print(profiles.text({ ...profile, current }))
      return
    }
    const { factLines } = await import('../../cli/render/table.ts')
    const facts: Parameters<typeof factLines>[0] = [
      ['name', `${profile.name}${current ? ' (current)' : ''}`],
      ['server', profile.server],
      ['user', profile.user ?? 'nobody is signed in'],
      ['token in', profile.user === undefined ? undefined : (profile.storage ?? 'keychain')],
      ['roles', profile.roles?.join(', ')],
      ['ca-file', profile.caFile],
      ['plain http', profile.insecureHttp ? 'allowed' : undefined],
      ['credentials', profile.credentials],
    ]
    this.print(factLines(facts))
  }
}
