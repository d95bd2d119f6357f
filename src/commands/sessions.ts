import { lists, prints } from '../cli/command/base.ts'
import { boolean, connectionFlags, optionalArgument, text } from '../cli/command/flags.ts'
import { document, integer, string } from '../cli/render/document.ts'
import { type CommandSession, localCall } from '../cli/session/session.ts'
import { TargetCommand } from '../cli/session/target-command.ts'
import { orUnknownUser } from '../cli/session/unknown-user.ts'
import { Fault } from '../core/base/errors.ts'
import { count } from '../core/base/format.ts'
import type { UserSession } from '../core/protocol/index.ts'

const otherUser = text('user')({ char: 'u', description: 'Another user, by name or e-mail; for Admins' })

const endings = document<{ readonly ended: number }>()({
  around: { target: string },
  rows: 'results',
  members: { ended: integer },
})

export class SessionsEnd extends TargetCommand {
  static override summary = 'End sessions and their tokens; takes effect immediately'
  static override description =
    `ID is the id that svc sessions list shows, or its beginning. --others ends every session except
the present one. An Admin can end the sessions of any user with --user; on this machine, --user is
required.`
  static override answers = { '': prints(async () => endings) }
  static override examples = [
    '<%= config.bin %> sessions end 3f2a9c1b',
    '<%= config.bin %> sessions end --others',
    '<%= config.bin %> sessions end --all --user bob',
  ]
  static override args = { id: optionalArgument('ID', 'Id of the session, or its beginning') }
  static override flags = {
    others: boolean({ description: 'End all sessions except the present one', exclusive: ['all'] }),
    all: boolean({ description: 'End all sessions, including the present one' }),
    user: otherUser,
    ...connectionFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(SessionsEnd)
    const { others, all } = flags
    if (args.id === undefined && !others && !all) {
      throw new Fault('Usage', 'ID is missing', {
        hints: ['svc sessions list shows the ids.', 'For all other sessions: svc sessions end --others'],
      })
    }
    if (args.id !== undefined && (others || all)) {
      throw new Fault('Usage', `ID and ${others ? '--others' : '--all'} cannot be combined`, {
        hints: ['Omit one of them.'],
      })
    }
    await this.inSession(flags, async (session, target) => {
      const one = args.id === undefined ? undefined : await sessionNamed(session, args.id, flags.user, signal)
      const request = { ...(one ? { Id: one.Id } : { Others: others, All: all }), UserName: flags.user }
      const ending = session.service.endSession(request, localCall(signal))
      const { Ended = 0 } = await orUnknownUser(ending, flags.user, session)
      const sentence = `${count(Ended, 'session has', 'sessions have')} ended`
      this.print(flags.json ? endings.text({ target }, [{ ended: Ended }]) : sentence)
      const own = session.target.kind === 'server' && flags.user === undefined
      if (own && (all || one?.Current)) this.say('Note: your present session has ended too: svc login')
    })
  }
}

/** The session whose id begins with `typed`. Throws Fault NotFound for none, and Usage for several. */
async function sessionNamed(
  session: CommandSession,
  typed: string,
  UserName: string | undefined,
  signal: AbortSignal,
): Promise<UserSession> {
  const listing = session.service.getSessions({ UserName }, localCall(signal))
  const { Sessions = [] } = await orUnknownUser(listing, UserName, session)
  const start = typed.trim().toLowerCase()
  const matches = start === '' ? [] : Sessions.filter(({ Id = '' }) => Id.startsWith(start))
  const [one, another] = matches
  if (one && !another) return one
  const hints = ['svc sessions list shows the ids.']
  if (one) throw new Fault('Usage', `${matches.length} sessions have an id that begins with "${typed}"`, { hints })
  throw new Fault('NotFound', `there is no session "${typed}"`, { hints })
}

export class SessionsList extends TargetCommand {
  static override summary = 'List your sessions, or those of another user'
  static override description = `Lists the sign-ins that have neither expired nor ended. An Admin can list
the sessions of any user with --user; on this machine, --user is required.`
  static override answers = { '': lists(async () => (await import('../cli/accounts/lists.ts')).sessions) }
  static override examples = [
    '<%= config.bin %> sessions list',
    '<%= config.bin %> sessions list --user bob --json',
    '<%= config.bin %> sessions list --local --user bob',
  ]
  static override flags = { user: otherUser, ...connectionFlags }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { flags } = await this.parse(SessionsList)
    await this.inSession(flags, async (session, target) => {
      const listing = session.service.getSessions({ UserName: flags.user }, localCall(signal))
      const { UserName = '', Sessions = [] } = await orUnknownUser(listing, flags.user, session)
      const { sessionRow, sessions } = await import('../cli/accounts/lists.ts')
      this.printList(sessions.render(Sessions.map(sessionRow), { target, userName: UserName }, this.output))
    })
  }
}
