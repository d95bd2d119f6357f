import { prints, SvcCommand } from '../../cli/command/base.ts'
import { connectionFlags, required, requiredArgument } from '../../cli/command/flags.ts'
import { thisMachine } from '../../cli/io/process.ts'
import { sanitizeLine } from '../../core/sanitize.ts'

export default class ConfigSet extends SvcCommand {
  static override summary = 'Change a setting of the current profile, or of another one'
  static override answers = { '': prints(async () => (await import('../../cli/setup/lists.ts')).changedSettings) }
  static override examples = [
    '<%= config.bin %> config set ca-file /etc/ssl/private-ca.pem',
    '<%= config.bin %> config set credentials always --profile prod',
  ]
  static override args = {
    key: requiredArgument({ name: 'KEY', description: 'Name of the setting', ignoreStdin: true }),
    value: requiredArgument({ name: 'VALUE', description: 'New value', ignoreStdin: true }),
  }
  static override flags = { profile: connectionFlags.profile }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(ConfigSet)
    const [{ configKey, withSetting }, { changeSettings }] = await Promise.all([
      import('../../cli/setup/config-keys.ts'),
      import('../../cli/settings/profiles.ts'),
    ])
    const key = configKey(required(args.key, 'KEY'))
    const value = required(args.value, 'VALUE')
    const change = { key, value }
    await changeSettings(this.io.env, (settings) => withSetting(settings, change, flags, this.io.env), signal)
    if (flags.json) {
      const { changedSettings } = await import('../../cli/setup/lists.ts')
      this.print(changedSettings.text({ target: thisMachine }, [change]))
    } else this.print(sanitizeLine(`${key} is now ${value}`))
  }
}
