import { lists } from '../../cli/command/base.ts'
import { connectionFlags, text } from '../../cli/command/flags.ts'
import { localCall, openSession, placeOf } from '../../cli/session/session.ts'
import { TargetCommand } from '../../cli/session/target-command.ts'
import { orUnknownUser } from '../../cli/session/unknown-user.ts'

export default class List extends TargetCommand {
  static override summary = 'List your sessions, or those of another user'
  static override description =
    `A session is a sign-in with its tokens, which has neither expired nor ended. An Admin can list
the sessions of any user with --user; on this machine, --user is required.`
  static override answers = { '': lists(async () => (await import('../../cli/accounts/lists.ts')).sessions) }
  static override examples = [
    '<%= config.bin %> sessions list',
    '<%= config.bin %> sessions list --user bob --json',
    '<%= config.bin %> sessions list --local --user bob',
  ]
  static override flags = {
    user: text('user')({ char: 'u', description: 'Another user, by name or e-mail; for Admins' }),
    ...connectionFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(List)
    const session = await openSession(flags, this.io, { say: (line) => this.say(line) })
    this.target = placeOf(session)
    await this.warnOfOtherStore(session.runtime?.facts.store)
    try {
      const { UserName = '', Sessions = [] } = await orUnknownUser(
        session.service.getSessions({ UserName: flags.user }, localCall(signal)),
        flags.user,
        session,
      )
      const { sessions } = await import('../../cli/accounts/lists.ts')
      this.printList(sessions.render(Sessions, { target: this.target, userName: UserName }, this.output))
    } finally {
      await session.close()
    }
  }
}
