import { SvcCommand } from '../../cli/base.ts'
import { boolean, connectionFlags } from '../../cli/flags.ts'
import { readSettings } from '../../cli/session.ts'

export default class ConfigList extends SvcCommand {
  static override summary = 'Show what svc goes by here: flag > environment > profile > default'
  static override examples = ['<%= config.bin %> config list --show-origin']
  static override flags = {
    'show-origin': boolean({ description: 'Say where each value comes from' }),
    profile: connectionFlags.profile,
  }

  protected async perform(): Promise<undefined> {
    const { flags } = await this.parse(ConfigList)
    const [{ effective }, { configuration }] = await Promise.all([
      import('../../cli/config-keys.ts'),
      import('../../cli/render/lists.ts'),
    ])
    const rows = await effective(await readSettings(process.env), flags, process.env)
    const withOrigin = flags.json || flags['show-origin']
    const listed = withOrigin ? rows : rows.map(({ key, value }) => ({ key, value }))
    this.print(configuration.render(listed, {}, { json: flags.json, screen: process.stdout }))
  }
}
