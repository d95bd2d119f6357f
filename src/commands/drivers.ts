import { lists, prints, SvcCommand } from '../cli/command/base.ts'
import { required, requiredArgument, text, unknownName } from '../cli/command/flags.ts'
import { thisMachine } from '../cli/io/process.ts'
import { configuration, mistakesOf } from '../cli/session/session.ts'

const load = () => import('../cli/drivers/list.ts')

export class DriversAdd extends SvcCommand {
  static override summary = 'Install the driver of SQL Server, MongoDB or SFTP'
  static override description =
    `Runs npm ci without install scripts, in the versions and with the hashes that come with this svc. The driver
goes to a folder of this account; root installs it for the service and for all accounts (/usr/local/lib/svc).
A driver that is there remains until the new one is complete. A running svc serve finds it at its next run.

The npm of this account's PATH is used with its own settings, so a registry or proxy in .npmrc applies.`
  static override answers = { '': prints(async () => (await load()).addedDrivers) }
  static override examples = ['<%= config.bin %> drivers add sqlserver']
  static override args = { name: requiredArgument('NAME', 'Driver: sqlserver, mongo or sftp') }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(DriversAdd)
    const name = required(args.name, 'NAME')
    const { driverNames } = await import('../core/checks/drivers/index.ts')
    const driver = driverNames.find((one) => one === name)
    if (driver === undefined) throw unknownName('driver', name, driverNames, 'Drivers')
    const [{ addDriver }, { renderAdded }] = await Promise.all([import('../cli/drivers/add.ts'), load()])
    const added = await addDriver(driver, this.io, signal, (line) => this.say(line))
    this.print(renderAdded(added, flags.json === true))
  }
}

export class DriversList extends SvcCommand {
  static override summary = 'List the drivers, where they are, and which monitors need them'
  static override answers = { '': lists(async () => (await load()).driverList) }
  static override examples = ['<%= config.bin %> drivers list', '<%= config.bin %> drivers list --json']
  static override flags = { config: text('config')({ description: 'The svc.yaml to use (SVC_CONFIG)' }) }

  protected async perform(): Promise<undefined> {
    const { flags } = await this.parse(DriversList)
    const config = await configuration(flags, this.io.env, { tolerant: true })
    for (const mistake of mistakesOf(config)) this.say(`Warning: ${mistake}`)
    const { driverList, listDrivers } = await load()
    this.printList(driverList.render(await listDrivers(config, this.io.env), { target: thisMachine }, this.output))
  }
}
