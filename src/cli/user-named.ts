import { Fault } from '../core/errors.ts'
import type { Admin, UserFacts } from '../core/service.ts'
import { didYouMean } from '../core/suggest.ts'

/** A user of the store by name or e-mail. Throws Fault `NotFound` with the nearest name. */
export async function userNamed(admin: Admin, name: string): Promise<UserFacts> {
  try {
    return await admin.users.show(name)
  } catch (error) {
    if (!(error instanceof Fault) || error.fault !== 'NotFound') throw error
    const known = await admin.users.near(name)
    const nearest = didYouMean(name, known)
    throw new Fault('NotFound', `there is no user "${name}"`, {
      hints: [
        ...(nearest === undefined ? [] : [`Did you mean ${nearest}?`]),
        known.length === 0
          ? 'There are no users yet: svc users add NAME --role Admin'
          : 'svc users list shows the users.',
      ],
    })
  }
}
