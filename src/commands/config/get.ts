import { prints, SvcCommand } from '../../cli/command/base.ts'
import { connectionFlags, required, requiredArgument } from '../../cli/command/flags.ts'
import { thisMachine } from '../../cli/io/process.ts'
import { readSettings } from '../../cli/session/session.ts'
import { sanitizeLine } from '../../core/sanitize.ts'

export default class ConfigGet extends SvcCommand {
  static override summary = 'Print the effective value of a setting'
  static override answers = { '': prints(async () => (await import('../../cli/setup/lists.ts')).configuration) }
  static override examples = ['<%= config.bin %> config get server', '<%= config.bin %> config get store']
  static override args = {
    key: requiredArgument({ name: 'KEY', description: 'Name of the setting', ignoreStdin: true }),
  }
  static override flags = {
    profile: connectionFlags.profile,
    store: connectionFlags.store,
    config: connectionFlags.config,
  }

  protected async perform(): Promise<undefined> {
    const { args, flags } = await this.parse(ConfigGet)
    const { inForce, inForceKey } = await import('../../cli/setup/in-force.ts')
    const readers = await inForce(await readSettings(this.io.env), flags, this.io.env)
    const key = inForceKey(required(args.key, 'KEY'), [...readers.keys()])
    const row = await readers.get(key)?.()
    if (flags.json && row) {
      const { configuration } = await import('../../cli/setup/lists.ts')
      this.print(configuration.document([{ key, ...row }], { target: thisMachine }))
    } else if (row?.value !== undefined) this.print(sanitizeLine(row.value))
  }
}
