import { prints } from '../../cli/command/base.ts'
import { connectionFlags, requiredArgument } from '../../cli/command/flags.ts'
import { showRoles } from '../../cli/roles/role-change.ts'
import { userOf } from '../../cli/roles/role-command.ts'
import { localCall, openSession, placeOf } from '../../cli/session/session.ts'
import { TargetCommand } from '../../cli/session/target-command.ts'

export default class Show extends TargetCommand {
  static override summary = 'Show the roles and permissions of a user'
  static override answers = { '': prints(async () => (await import('../../cli/roles/lists.ts')).holdings) }
  static override examples = [
    '<%= config.bin %> roles show alice',
    '<%= config.bin %> roles show alice@example.com --server https://svc.example.com --json',
  ]
  static override args = {
    user: requiredArgument({ name: 'USER', description: 'User name or e-mail', ignoreStdin: true }),
  }
  static override flags = connectionFlags

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(Show)
    const userName = userOf(args.user)
    const session = await openSession(flags, this.io, { say: (line) => this.say(line) })
    this.target = placeOf(session)
    await this.warnOfOtherStore(session.runtime?.facts.store)
    try {
      const lists = await showRoles({ session, call: localCall(signal) }, userName)
      const { renderHoldings } = await import('../../cli/roles/lists.ts')
      this.print(renderHoldings({ userName, ...lists }, this.target, this.output))
    } finally {
      await session.close()
    }
  }
}
