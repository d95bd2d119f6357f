import { Fault } from '../../core/base/errors.ts'
import { didYouMean } from '../../core/base/suggest.ts'
import { shellWord } from '../render/hints.ts'
import { usersNear } from './admin.ts'
import type { CommandSession } from './session.ts'

/**
 * The Fault for a user that a server or a store does not have, in place of its NotFound, whose whole message is the name
 * (O1). Names the nearest user of a store.
 */
export async function unknownUser(error: Fault, userName: string, session: CommandSession): Promise<Fault> {
  const { remoteStatus } = error.details
  const candidates = session.runtime ? await usersNear(session.service, userName).catch(() => []) : []
  const nearest = didYouMean(userName, candidates)
  return new Fault('NotFound', `there is no user "${userName}" ${at(session)}`, {
    ...(remoteStatus === undefined ? {} : { remoteStatus }),
    hints: [
      ...(nearest === undefined ? [] : [`Did you mean ${nearest}?`]),
      ...(session.runtime
        ? [
            'svc users list shows the users; --server URL selects a server instead.',
            ...(nearest === undefined ? [`To add this user: svc users add ${shellWord(userName)}`] : []),
          ]
        : ['USER is a user name or an e-mail address.']),
    ],
  })
}

const at = (session: CommandSession): string =>
  session.runtime ? `in the store of ${session.label}` : `at ${session.label}`

/** Returns the result of `work`. Replaces its Fault `NotFound` about a user by one that names the nearest user. */
export async function orUnknownUser<R>(
  work: Promise<R>,
  userName: string | undefined,
  session: CommandSession,
): Promise<R> {
  try {
    return await work
  } catch (error) {
    const isUser = error instanceof Fault && error.fault === 'NotFound' && error.message === userName
    throw isUser ? await unknownUser(error, userName ?? '', session) : error
  }
}
