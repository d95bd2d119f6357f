import { prints, SvcCommand } from '../../cli/command/base.ts'
import { required, requiredArgument } from '../../cli/command/flags.ts'
import { thisMachine } from '../../cli/io/process.ts'
import { document, flag, string } from '../../cli/render/document.ts'
import { Fault } from '../../core/errors.ts'
import { sanitizeLine } from '../../core/sanitize.ts'

type Removed = { readonly name: string; readonly removed: true; readonly wasCurrent: boolean }
const removed = document<Removed>()({
  around: { target: string },
  rows: 'profiles',
  members: { name: string, removed: flag, wasCurrent: flag },
})

export default class ProfileRemove extends SvcCommand {
  static override summary = 'Remove a profile; sign out of it first'
  static override answers = { '': prints(async () => removed) }
  static override examples = ['<%= config.bin %> profile remove staging']
  static override args = {
    name: requiredArgument({ name: 'NAME', description: 'Name of the profile', ignoreStdin: true }),
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(ProfileRemove)
    const { changeSettings, profileNamed } = await import('../../cli/settings/profiles.ts')
    const name = required(args.name, 'NAME')
    let wasCurrent = false
    await changeSettings(
      this.io.env,
      async (settings) => {
        const profile = await profileNamed(settings, name, 'svc profile remove')
        if (profile.user !== undefined) {
          // Its token would stay valid without anyone knowing.
          throw new Fault('Usage', `${profile.user} is still signed in with profile "${name}"`, {
            hints: [`svc logout --profile ${name}`],
          })
        }
        wasCurrent = settings.current === name
        const profiles = settings.profiles.filter((one) => one !== profile)
        return { ...settings, profiles, current: wasCurrent ? undefined : settings.current }
      },
      signal,
    )
    const next = wasCurrent
      ? 'It was the current one: without --server or --profile, all commands now act on this machine.'
      : ''
    if (flags.json) this.print(removed.text({ target: thisMachine }, [{ name, removed: true, wasCurrent }]))
    else this.print(sanitizeLine(`Profile ${name} is removed. ${next}`).trim())
  }
}
