import { Fault } from '../../core/base/errors.ts'
import { didYouMean } from '../../core/base/suggest.ts'
import { shellWord } from '../render/hints.ts'
import { usersNear } from './admin.ts'
import type { CommandSession } from './session.ts'

/**
 * The Fault for a user that a server or a store does not have, in place of its NotFound, whose whole message is the name
 * (O1). Names the nearest user, where a server tells it.
 */
export async function unknownUser(error: Fault, userName: string, session: CommandSession): Promise<Fault> {
  const { remoteStatus } = error.details
  const candidates = await usersNear(session.service, userName).catch(() => undefined)
  const nearest = candidates && didYouMean(userName, candidates)
  return new Fault('NotFound', `there is no user "${userName}"`, {
    ...(remoteStatus === undefined ? {} : { remoteStatus }),
    hints: [
      ...(nearest === undefined ? [] : [`Did you mean ${nearest}?`]),
      ...(candidates
        ? [
            'svc users list shows the users.',
            ...(nearest === undefined ? [`To add this user: svc users add ${shellWord(userName)}`] : []),
          ]
        : ['USER is a user name or an e-mail address.']),
    ],
  })
}

/** Returns the result of `work`. Replaces its Fault `NotFound` about a user by one that names the nearest user. */
export async function orUnknownUser<R>(
  work: Promise<R>,
  userName: string | undefined,
  session: CommandSession,
): Promise<R> {
  try {
    return await work
  } catch (error) {
    const isUser =
      error instanceof Fault &&
      error.fault === 'NotFound' &&
      (error.details.remoteMessage ?? error.message) === userName
    throw isUser ? await unknownUser(error, userName ?? '', session) : error
  }
}
