import { prints, SvcCommand } from '../cli/command/base.ts'
import { machine, packageJson, thisMachine } from '../cli/io/process.ts'
import { document, string } from '../cli/render/document.ts'

const versions = document<{ readonly svc: string; readonly node: string; readonly platform: string }>()({
  around: { target: string },
  rows: 'versions',
  members: { svc: string, node: string, platform: string },
})

export default class Version extends SvcCommand {
  static override summary = 'Print the versions of svc and Node, and the platform'
  static override answers = { '': prints(async () => versions) }
  static override examples = ['<%= config.bin %> version', '<%= config.bin %> version --json']

  protected async perform(): Promise<undefined> {
    const { flags } = await this.parse(Version)
    const facts = {
      svc: packageJson().version,
      node: machine.node,
      platform: `${machine.platform}-${machine.arch}`,
    }
    this.print(
      flags.json
        ? versions.text({ target: thisMachine }, [facts])
        : `svc ${facts.svc} (Node ${facts.node}, ${facts.platform})`,
    )
  }
}
