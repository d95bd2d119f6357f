import { lists, SvcCommand } from '../../cli/command/base.ts'
import { boolean, connectionFlags } from '../../cli/command/flags.ts'
import { thisMachine } from '../../cli/io/process.ts'
import { readSettings } from '../../cli/session/session.ts'

export default class ConfigList extends SvcCommand {
  static override summary = 'Show the effective settings and their sources'
  static override description =
    `Lists svc.yaml, the store, the profile and its server, the keychain, the certificate authorities, the
proxy, the folder of the settings and the versions, as a command started now would use them. A flag takes
precedence over a variable, a variable over the profile, and the profile over the default. No server is
contacted. svc config get and svc config set read and change one setting.`
  static override answers = { '': lists(async () => (await import('../../cli/setup/lists.ts')).configuration) }
  static override examples = [
    '<%= config.bin %> config list',
    '<%= config.bin %> config list --profile prod',
    '<%= config.bin %> config list --json',
  ]
  static override flags = {
    'show-origin': boolean({ hidden: true, description: 'Has no effect: the origin is always shown' }),
    profile: connectionFlags.profile,
    store: connectionFlags.store,
    config: connectionFlags.config,
  }

  protected async perform(): Promise<undefined> {
    const { flags } = await this.parse(ConfigList)
    const [{ inForce }, { configuration }] = await Promise.all([
      import('../../cli/setup/in-force.ts'),
      import('../../cli/setup/lists.ts'),
    ])
    const readers = await inForce(await readSettings(this.io.env), flags, this.io.env)
    const rows = await Promise.all([...readers].map(async ([key, read]) => ({ key, ...(await read()) })))
    this.print(configuration.render(rows, { target: thisMachine }, this.output))
  }
}
