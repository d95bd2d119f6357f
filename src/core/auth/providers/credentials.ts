import { emptyField, Fault, type FieldFault } from '../../errors.ts'
import type { Authenticate } from '../../protocol/index.ts'
import type { Call } from '../../service.ts'
import type { User } from '../../store/index.ts'
import { beginAttempt } from '../attempts.ts'
import { addressOf } from '../identify.ts'
import type { Provider, ProviderContext } from './provider.ts'

/** Signs in with a user name or e-mail address and a password. */
const credentials: Provider = { signIn }
export default credentials

async function signIn(
  world: ProviderContext,
  request: Authenticate,
  call: Pick<Call, 'caller' | 'correlationId' | 'signal'>,
): Promise<User> {
  const { UserName: name = '', Password: password = '' } = request
  refuseEmpty(name, password)
  const { data, passwords } = world
  const attempt = await beginAttempt(world, name, call.caller, call.signal)
  const user = await data.users.find(name)
  const began = await attempt.locked()
  const usable = user && !user.disabled && !began ? user : undefined
  const checked = await passwords.check(password, usable?.passwordHash, call.signal, attempt.admit)
  // Check the lock again: among many parallel attempts, only as many as the limit allows may learn the result.
  if (!usable || !checked.right || (await attempt.locked())) {
    const { locked, last } = await attempt.failed()
    // The user may have typed a password into the wrong field, so only existing names are recorded.
    await data.audit.write(locked ? 'signin.locked' : 'signin.failed', user?.userName, {
      who: '-',
      userId: undefined,
      address: addressOf(call),
      correlationId: call.correlationId,
      reason: last ? limitReached : undefined,
    })
    throw new Fault('Unauthorized', 'Invalid Username or Password')
  }
  await attempt.succeeded(usable)
  if (checked.outdated) await renewHash(world, usable, password, call.signal)
  return usable
}

const limitReached = 'limit reached: addresses that have never signed in with this name are refused'

/**
 * Rehashes the password with the current parameters (P1). Errors must not refuse this sign-in; the next one tries
 * again.
 */
async function renewHash(world: ProviderContext, user: User, password: string, signal: AbortSignal): Promise<void> {
  const { data, passwords } = world
  if (user.passwordHash === undefined) return
  try {
    await data.users.setPassword(user.id, await passwords.hash(password, signal), { replaces: user.passwordHash })
  } catch (error) {
    if (!(error instanceof Fault)) throw error
  }
}

/** Refuses empty fields and names each (A4). */
function refuseEmpty(name: string, password: string): void {
  const fields: FieldFault[] = []
  if (name.trim() === '') fields.push(emptyField('UserName', 'User Name'))
  if (password.trim() === '') fields.push(emptyField('Password'))
  if (fields.length === 0) return
  const lines = fields.map(({ FieldName, Message }) => `\n -- ${FieldName}: ${Message}`).join('')
  throw new Fault('BadRequest', `Validation failed: ${lines}`, { errorCode: 'ValidationException', fields })
}
