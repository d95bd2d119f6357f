import { prints, SvcCommand } from '../../cli/command/base.ts'
import { required, requiredArgument } from '../../cli/command/flags.ts'
import { sanitizeLine } from '../../core/sanitize.ts'

export default class ProfileUse extends SvcCommand {
  static override summary = 'Make a profile the current one'
  static override description =
    `health, heartbeat, roles assign|show|unassign, api, whoami and logout then act at its server, unless
--local, --server or --profile selects another target. All other commands act on this machine.`
  static override answers = { '': prints(async () => (await import('../../cli/setup/lists.ts')).profiles) }
  static override examples = ['<%= config.bin %> profile use prod']
  static override args = {
    name: requiredArgument({ name: 'NAME', description: 'Name of the profile', ignoreStdin: true }),
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(ProfileUse)
    const { changeSettings, profileNamed } = await import('../../cli/settings/profiles.ts')
    const name = required(args.name, 'NAME')
    const after = await changeSettings(
      this.io.env,
      async (settings) => ({ ...settings, current: (await profileNamed(settings, name, 'svc profile use')).name }),
      signal,
    )
    const profile = await profileNamed(after, name, 'svc profile use')
    if (flags.json) {
      const { profiles } = await import('../../cli/setup/lists.ts')
      this.print(profiles.text({ ...profile, current: true }))
      return
    }
    const { profileScope } = await import('../../cli/session/other-target.ts')
    const lines = [`Profile ${name} is now the current one: ${profile.server}`, ...profileScope]
    this.print(lines.map(sanitizeLine).join('\n'))
  }
}
