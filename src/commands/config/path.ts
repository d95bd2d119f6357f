import { SvcCommand } from '../../cli/command/base.ts'

export default class ConfigPath extends SvcCommand {
  static override summary = 'Print where the settings are kept'
  static override examples = ['<%= config.bin %> config path']

  protected async perform(): Promise<undefined> {
    const { flags } = await this.parse(ConfigPath)
    const { settingsPath } = await import('../../cli/settings/profiles.ts')
    const path = settingsPath(this.io.env)
    this.print(flags.json ? JSON.stringify({ path }) : path)
  }
}
