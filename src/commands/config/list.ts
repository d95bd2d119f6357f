import { boolean } from '@oclif/core/flags'
import { SvcCommand } from '../../cli/base.ts'
import { connectionFlags } from '../../cli/flags.ts'
import { readSettings } from '../../cli/session.ts'
import { sanitizeLine } from '../../core/sanitize.ts'

export default class ConfigList extends SvcCommand {
  static override summary = 'Show what svc goes by here: flag > environment > profile > default'
  static override examples = ['<%= config.bin %> config list --show-origin']
  static override flags = {
    'show-origin': boolean({ description: 'Say where each value comes from' }),
    profile: connectionFlags.profile,
  }

  protected async perform(): Promise<undefined> {
    const { flags } = await this.parse(ConfigList)
    const { effective } = await import('../../cli/config-keys.ts')
    const rows = await effective(await readSettings(process.env), flags, process.env)
    if (flags.json) {
      this.print(JSON.stringify(rows.map(({ key, value, origin }) => ({ key, value: value ?? null, origin }))))
      return
    }
    const line = ({ key, value, origin }: (typeof rows)[number]): string =>
      [key.padEnd(14), sanitizeLine(value ?? '-'), ...(flags['show-origin'] ? [`(${sanitizeLine(origin)})`] : [])].join(
        ' ',
      )
    this.print(rows.map(line).join('\n'))
  }
}
