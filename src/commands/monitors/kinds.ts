import { Args } from '@oclif/core'
import { SvcCommand } from '../../cli/base.ts'
import { Fault } from '../../core/errors.ts'
import { didYouMean } from '../../core/suggest.ts'

export default class Kinds extends SvcCommand {
  static override summary = 'List every kind of monitor, or the settings of one'
  static override examples = ['<%= config.bin %> monitors kinds', '<%= config.bin %> monitors kinds postgres']
  static override args = {
    kind: Args.string({ name: 'KIND', description: 'A kind, for its settings and checks', ignoreStdin: true }),
  }

  protected async perform(): Promise<undefined> {
    const { args, flags } = await this.parse(Kinds)
    const { describeKinds } = await import('../../core/plan/index.ts')
    const kinds = await describeKinds()
    const { renderKinds, renderKind } = await import('../../cli/render/monitors.ts')
    if (args.kind === undefined) {
      this.print(flags.json ? JSON.stringify(kinds) : renderKinds(kinds, process.stdout))
      return
    }
    const kind = kinds.find(({ name }) => name === args.kind)
    if (!kind) {
      const names = kinds.map(({ name }) => name)
      const nearest = didYouMean(args.kind, names)
      throw new Fault('Usage', `unknown kind "${args.kind}"`, {
        hints: [...(nearest ? [`Did you mean ${nearest}?`] : []), `Kinds: ${names.join(' ')}`],
      })
    }
    this.print(flags.json ? JSON.stringify(kind) : renderKind(kind, process.stdout))
  }
}
