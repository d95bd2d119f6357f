import { SvcCommand } from '../cli/command/base.ts'
import { machine, packageJson } from '../cli/io/process.ts'

export default class Version extends SvcCommand {
  static override summary = 'Print the versions of svc and Node, and the platform'
  static override examples = ['<%= config.bin %> version', '<%= config.bin %> version --json']

  protected async perform(): Promise<undefined> {
    const { flags } = await this.parse(Version)
    const facts = {
      svc: packageJson().version,
      node: machine.node,
      platform: `${machine.platform}-${machine.arch}`,
    }
    this.print(flags.json ? JSON.stringify(facts) : `svc ${facts.svc} (Node ${facts.node}, ${facts.platform})`)
  }
}
