import { prints, SvcCommand } from '../../cli/command/base.ts'
import { boolean } from '../../cli/command/flags.ts'
import { thisMachine } from '../../cli/io/process.ts'

export default class Discover extends SvcCommand {
  static override summary = 'Detect the services on this machine and propose a svc.yaml'
  static override description =
    `Connects to every listening port of this machine and tries the protocols that svc knows. It runs
the monitors that it proposes: what fails or needs an account becomes a comment with the reason. It
never signs in and changes nothing. The file goes to stdout, the list of services to stderr.`
  static override answers = { '': prints(async () => (await import('../../cli/setup/lists.ts')).discoveries) }
  static override examples = [
    '<%= config.bin %> monitors discover',
    '<%= config.bin %> monitors discover > svc.yaml && <%= config.bin %> health --config svc.yaml -t all',
    '<%= config.bin %> monitors discover --write',
  ]
  static override flags = {
    write: boolean({
      description: "Write the file to the user's configuration folder; never overwrites a file",
    }),
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(Discover)
    const { proposedPath, writeProposed } = await import('../../cli/setup/write-proposed.ts')
    // Before svc connects to anything.
    if (flags.write) proposedPath(this.io.env)
    const { discoveryLines, proposedBy, proposeForThisMachine } = await import('../../cli/setup/discovery.ts')
    const discovery = await proposeForThisMachine(this.io.env, signal)
    const { proposals, others } = discovery
    const file = await discovery.file([
      proposedBy('svc monitors discover', this.io.clock),
      'Each entry has run once. Names, thresholds and accounts are yours to add: svc monitors kinds',
    ])
    if (flags.json) {
      const { discoveries } = await import('../../cli/setup/lists.ts')
      this.print(discoveries.text({ target: thisMachine, yaml: file, others }, proposals))
      return
    }
    for (const line of discoveryLines(discovery)) this.say(line)
    if (proposals.length === 0) this.say('Nothing that svc knows listens here: name your servers in svc.yaml yourself.')
    if (!flags.write) {
      this.print(file.trimEnd())
      return
    }
    const types = [...new Set(proposals.flatMap(({ type, problem }) => (problem === undefined ? [type] : [])))]
    this.print(
      `${writeProposed(file, this.io.env)} is written. Try it: svc health ${types.map((type) => `-t ${type}`).join(' ')}`,
    )
  }
}
