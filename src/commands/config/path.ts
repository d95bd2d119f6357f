import { prints, SvcCommand } from '../../cli/command/base.ts'
import { thisMachine } from '../../cli/io/process.ts'
import { document, string } from '../../cli/render/document.ts'

const files = document<{ readonly path: string }>()({
  around: { target: string },
  rows: 'files',
  members: { path: string },
})

export default class ConfigPath extends SvcCommand {
  static override summary = 'Print where the settings are kept'
  static override answers = { '': prints(async () => files) }
  static override examples = ['<%= config.bin %> config path']

  protected async perform(): Promise<undefined> {
    const { flags } = await this.parse(ConfigPath)
    const { settingsPath } = await import('../../cli/settings/profiles.ts')
    const path = settingsPath(this.io.env)
    this.print(flags.json ? files.text({ target: thisMachine }, [{ path }]) : path)
  }
}
