import { SvcCommand } from '../../cli/base.ts'
import { argument, required } from '../../cli/flags.ts'
import { sanitizeLine } from '../../core/sanitize.ts'

export default class ProfileUse extends SvcCommand {
  static override summary = 'Make a profile the current one: commands act at its server'
  static override examples = ['<%= config.bin %> profile use prod']
  static override args = { name: argument({ name: 'NAME', description: 'Name of the profile', ignoreStdin: true }) }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(ProfileUse)
    const { changeSettings, profileNamed } = await import('../../cli/profiles.ts')
    const name = required(args.name, 'NAME')
    const after = await changeSettings(
      process.env,
      async (settings) => ({ ...settings, current: (await profileNamed(settings, name, 'svc profile use')).name }),
      signal,
    )
    const profile = await profileNamed(after, name, 'svc profile use')
    if (flags.json) this.print(JSON.stringify({ ...profile, current: true }))
    else
      this.print(sanitizeLine(`Commands now act at ${profile.server} (profile ${name}). --local acts on this machine.`))
  }
}
