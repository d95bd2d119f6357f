import { lists, SvcCommand } from '../../cli/command/base.ts'
import { argument } from '../../cli/command/flags.ts'
import { rowNamed } from '../../cli/command/named-row.ts'
import { thisMachine } from '../../cli/io/process.ts'

export default class Kinds extends SvcCommand {
  static override summary = 'List every kind of monitor, or the settings of one'
  static override answers = { '': lists(async () => (await import('../../cli/monitors/lists.ts')).kinds) }
  static override examples = ['<%= config.bin %> monitors kinds', '<%= config.bin %> monitors kinds postgres']
  static override args = {
    kind: argument({ name: 'KIND', description: 'A kind, for its settings and checks', ignoreStdin: true }),
  }

  protected async perform(): Promise<undefined> {
    const { args } = await this.parse(Kinds)
    const { describeKinds } = await import('../../core/plan/index.ts')
    const kinds = await describeKinds()
    if (args.kind === undefined) {
      const monitors = await import('../../cli/monitors/lists.ts')
      this.print(monitors.kinds.render(kinds, { target: thisMachine }, this.output))
      return
    }
    const kind = rowNamed(kinds, args.kind, 'kind')
    const { renderKind } = await import('../../cli/monitors/lists.ts')
    this.print(renderKind(kind, this.output))
  }
}
