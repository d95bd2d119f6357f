import { lists, prints, SvcCommand } from '../cli/command/base.ts'
import { boolean, connectionFlags, required, requiredArgument } from '../cli/command/flags.ts'
import { thisMachine } from '../cli/io/process.ts'
import { document, string } from '../cli/render/document.ts'
import { readSettings } from '../cli/session/session.ts'
import { sanitizeLine } from '../core/base/sanitize.ts'

const load = () => import('../cli/setup/lists.ts')

const settingName = requiredArgument('KEY', 'Name of the setting')
const { profile, store, config } = connectionFlags
const placeFlags = { profile, store, config }

export class ConfigGet extends SvcCommand {
  static override summary = 'Print the effective value of a setting'
  static override answers = { '': prints(async () => (await load()).configuration) }
  static override examples = ['<%= config.bin %> config get server', '<%= config.bin %> config get store']
  static override args = { key: settingName }
  static override flags = placeFlags

  protected async perform(): Promise<undefined> {
    const { args, flags } = await this.parse(ConfigGet)
    const { inForce, inForceKey } = await import('../cli/setup/in-force.ts')
    const readers = await inForce(await readSettings(this.io.env), flags, this.io.env)
    const key = inForceKey(required(args.key, 'KEY'), [...readers.keys()])
    const row = await readers.get(key)?.()
    if (flags.json && row) {
      const { configuration } = await load()
      this.print(configuration.document([{ key, ...row }], { target: thisMachine }))
    } else if (row?.value !== undefined) this.printList(sanitizeLine(row.value))
  }
}

export class ConfigList extends SvcCommand {
  static override summary = 'Show the effective settings and their sources'
  static override description =
    `Lists svc.yaml, the store, the profile and its server, the keychain, the certificate authorities, the
proxy, the settings folder and the versions. A flag takes precedence over a variable, a variable over
the profile, and the profile over the default. svc contacts no server. svc config get and svc config set
read and change one setting.`
  static override answers = { '': lists(async () => (await load()).configuration) }
  static override examples = [
    '<%= config.bin %> config list',
    '<%= config.bin %> config list --profile prod',
    '<%= config.bin %> config list --json',
  ]
  static override flags = {
    'show-origin': boolean({ hidden: true, description: 'Has no effect: the origin is always shown' }),
    ...placeFlags,
  }

  protected async perform(): Promise<undefined> {
    const { flags } = await this.parse(ConfigList)
    const [{ inForce }, { configuration }] = await Promise.all([import('../cli/setup/in-force.ts'), load()])
    const readers = await inForce(await readSettings(this.io.env), flags, this.io.env)
    const rows = await Promise.all([...readers].map(async ([key, read]) => ({ key, ...(await read()) })))
    this.printList(configuration.render(rows, { target: thisMachine }, this.output))
  }
}

const files = document<{ readonly path: string }>()({
  around: { target: string },
  rows: 'files',
  members: { path: string },
})

export class ConfigPath extends SvcCommand {
  static override summary = 'Print the path of the settings file'
  static override answers = { '': prints(async () => files) }
  static override examples = ['<%= config.bin %> config path']

  protected async perform(): Promise<undefined> {
    const { flags } = await this.parse(ConfigPath)
    const { settingsPath } = await import('../cli/settings/profiles.ts')
    const path = settingsPath(this.io.env)
    this.printList(flags.json ? files.text({ target: thisMachine }, [{ path }]) : path)
  }
}

/** A command that changes one setting of a profile. */
abstract class ConfigChange extends SvcCommand {
  static override answers = { '': prints(async () => (await load()).changedSettings) }
  static override flags = { profile }

  /** Changes the setting, after it has validated first the name and then the value. Undefined removes the setting. */
  protected async change(
    name: string | undefined,
    newValue: () => string | undefined,
    flags: { readonly profile?: string | undefined; readonly json: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const [{ configKey, withSetting }, { changeSettings }] = await Promise.all([
      import('../cli/setup/config-keys.ts'),
      import('../cli/settings/profiles.ts'),
    ])
    const key = configKey(required(name, 'KEY'))
    const value = newValue()
    await changeSettings(this.io.env, (settings) => withSetting(settings, { key, value }, flags, this.io.env), signal)
    if (flags.json) {
      const { changedSettings } = await load()
      this.print(changedSettings.text({ target: thisMachine }, [{ key, value: value ?? null }]))
    } else this.print(sanitizeLine(value === undefined ? `${key} is no longer set` : `${key} is now ${value}`))
  }
}

export class ConfigSet extends ConfigChange {
  static override summary = 'Change a setting of the current profile, or of --profile'
  static override examples = [
    '<%= config.bin %> config set ca-file /etc/ssl/private-ca.pem',
    '<%= config.bin %> config set credentials always --profile prod',
  ]
  static override args = { key: settingName, value: requiredArgument('VALUE', 'New value') }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(ConfigSet)
    const value = (): string => required(args.value, 'VALUE')
    await this.change(args.key, value, flags, signal)
  }
}

export class ConfigUnset extends ConfigChange {
  static override summary = 'Remove a setting from the current profile, or from --profile'
  static override examples = ['<%= config.bin %> config unset profile', '<%= config.bin %> config unset ca-file']
  static override args = { key: settingName }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(ConfigUnset)
    await this.change(args.key, () => undefined, flags, signal)
  }
}
