import { prints, SvcCommand } from '../../cli/command/base.ts'
import { connectionFlags, required, requiredArgument } from '../../cli/command/flags.ts'
import { thisMachine } from '../../cli/io/process.ts'

export default class ConfigUnset extends SvcCommand {
  static override summary = 'Remove a setting from the current profile, or from another one'
  static override answers = { '': prints(async () => (await import('../../cli/setup/lists.ts')).changedSettings) }
  static override examples = ['<%= config.bin %> config unset profile', '<%= config.bin %> config unset ca-file']
  static override args = {
    key: requiredArgument({ name: 'KEY', description: 'Name of the setting', ignoreStdin: true }),
  }
  static override flags = { profile: connectionFlags.profile }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(ConfigUnset)
    const [{ configKey, withSetting }, { changeSettings }] = await Promise.all([
      import('../../cli/setup/config-keys.ts'),
      import('../../cli/settings/profiles.ts'),
    ])
    const change = { key: configKey(required(args.key, 'KEY')), value: undefined }
    await changeSettings(this.io.env, (settings) => withSetting(settings, change, flags, this.io.env), signal)
    if (flags.json) {
      const { changedSettings } = await import('../../cli/setup/lists.ts')
      this.print(changedSettings.text({ target: thisMachine }, [{ key: change.key, value: null }]))
    } else this.print(`${change.key} is not set any more`)
  }
}
