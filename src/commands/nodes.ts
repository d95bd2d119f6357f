import { lists, prints } from '../cli/command/base.ts'
import { connectionFlags, required, requiredArgument } from '../cli/command/flags.ts'
import { localCall } from '../cli/session/session.ts'
import { TargetCommand } from '../cli/session/target-command.ts'

const load = () => import('../cli/nodes/lists.ts')

export default class Nodes extends TargetCommand {
  static override summary = 'List the nodes on a PostgreSQL store; one runs the monitors'
  static override description =
    `The first line says how many nodes are live, and which of them holds the lease: it runs the monitors of the
network for all. Monitors of a machine run on each node. CONFIG is shown where live nodes have different
monitors. * is the node that answers. A node is out 10 s after it last renewed its row.

At a server, the caller needs a role or the permission health.`
  static override answers = { '': lists(async () => (await load()).nodes) }
  static override examples = [
    '<%= config.bin %> nodes',
    '<%= config.bin %> nodes --server https://svc.example.com --json',
  ]
  static override flags = connectionFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(Nodes)
    await this.inSession(flags, async ({ service }, target) => {
      const answer = await service.getNodes({}, localCall(signal))
      const { nodesHeadline, renderNodes } = await load()
      const { isTTY } = this.output.screen
      this.printList(renderNodes(answer, target, this.io.clock.now(), this.output))
      const { mark, sentence } = nodesHeadline(answer)
      if (!isTTY && !this.isJsonRequested() && mark !== 'ok') this.say(`Warning: ${sentence}`)
    })
  }
}

export class NodesForget extends TargetCommand {
  static override summary = 'Remove a node that does not return, with what is stored of its machine'
  static override description =
    `Its monitors of the machine are removed from states and notifications, and their open incidents end as
unknown. A node that is live is refused: stop its svc serve first. Nodes that have been away for 24 hours
are removed by themselves.

At a server, the caller needs the role Admin. The audit log records who removed it.`
  static override answers = { '': prints(async () => (await load()).forgottenNodes) }
  static override examples = ['<%= config.bin %> nodes forget node-b']
  static override args = { name: requiredArgument('NAME', 'Name of the node, as svc nodes shows it') }
  static override flags = connectionFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(NodesForget)
    const Name = required(args.name, 'NAME')
    await this.inSession(flags, async ({ service }, target) => {
      const { Node: { Name: name = Name } = {} } = await service.forgetNode({ Name }, localCall(signal))
      const { renderDone } = await import('../cli/render/done.ts')
      const { forgottenNodes } = await load()
      this.printList(
        renderDone(name, target, {
          ...this.output,
          sentence: `the node ${name} is forgotten`,
          word: 'forgotten',
          of: 'Target',
          document: () => forgottenNodes.text({ target }, [{ name, forgotten: true }]),
        }),
      )
    })
  }
}
