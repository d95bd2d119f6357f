import { prints } from '../../cli/command/base.ts'
import { argument, boolean, connectionFlags, text } from '../../cli/command/flags.ts'
import { document, integer, string } from '../../cli/render/document.ts'
import { type CommandSession, localCall, openSession, placeOf } from '../../cli/session/session.ts'
import { TargetCommand } from '../../cli/session/target-command.ts'
import { orUnknownUser } from '../../cli/session/unknown-user.ts'
import { Fault } from '../../core/errors.ts'
import type { UserSession } from '../../core/protocol/index.ts'

const endings = document<{ readonly ended: number }>()({
  around: { target: string },
  rows: 'results',
  members: { ended: integer },
})

export default class End extends TargetCommand {
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
  static override args = {
    id: argument({ name: 'ID', description: 'Id of the session, or its beginning', ignoreStdin: true }),
  }
  static override flags = {
    others: boolean({ description: 'End all sessions except the present one', exclusive: ['all'] }),
    all: boolean({ description: 'End all sessions, the present one too' }),
    user: text('user')({ char: 'u', description: 'Another user, by name or e-mail; for Admins' }),
    ...connectionFlags,
  }

  protected async perform(signal: AbortSignal): Promise<undefined> {
    const { args, flags } = await this.parse(End)
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
    const session = await openSession(flags, this.io, { say: (line) => this.say(line) })
    this.target = placeOf(session)
    await this.warnOfOtherStore(session.runtime?.facts.store)
    try {
      const one = args.id === undefined ? undefined : await sessionNamed(session, args.id, flags.user, signal)
      const request = one ? { Id: one.Id } : { Others: others, All: all }
      const { Ended = 0 } = await orUnknownUser(
        session.service.endSession({ ...request, UserName: flags.user }, localCall(signal)),
        flags.user,
        session,
      )
      this.print(
        flags.json
          ? endings.text({ target: this.target }, [{ ended: Ended }])
          : `${Ended === 1 ? '1 session has' : `${Ended} sessions have`} ended`,
      )
      const own = session.target.kind === 'server' && flags.user === undefined
      if (own && (all || one?.Current)) this.say('Note: your present session has ended too: svc login')
    } finally {
      await session.close()
    }
  }
}

/** The session whose id begins with `typed`. Throws Fault NotFound for none, and Usage for several. */
async function sessionNamed(
  session: CommandSession,
  typed: string,
  UserName: string | undefined,
  signal: AbortSignal,
): Promise<UserSession> {
  const { Sessions = [] } = await orUnknownUser(
    session.service.getSessions({ UserName }, localCall(signal)),
    UserName,
    session,
  )
  const start = typed.trim().toLowerCase()
  const matches = start === '' ? [] : Sessions.filter(({ Id = '' }) => Id.startsWith(start))
  const [one, another] = matches
  if (one && !another) return one
  const hints = ['svc sessions list shows the ids.']
  if (one) throw new Fault('Usage', `${matches.length} sessions have an id that begins with "${typed}"`, { hints })
  throw new Fault('NotFound', `there is no session "${typed}"`, { hints })
}
