import { Fault, type FieldFault } from '../../errors.ts'
import type { Authenticate } from '../../protocol/index.ts'
import type { Call } from '../../service.ts'
import type { User } from '../../store/index.ts'
import { beginAttempt } from '../attempts.ts'
import { addressOf } from '../identify.ts'
import type { Provider, ProviderContext } from './provider.ts'

/** A user name or e-mail, and a password. */
const credentials: Provider = { signIn }
export default credentials

async function signIn(
  world: ProviderContext,
  request: Authenticate,
  call: Pick<Call, 'caller' | 'correlationId' | 'signal'>,
): Promise<User> {
  const { UserName: name = '', Password: password = '' } = request
  refuseEmpty(name, password)
  const { data, now, passwords } = world
  const attempt = await beginAttempt(data, now, name, call.caller, call.signal)
  const user = await data.users.find(name)
  const began = await attempt.locked()
  const usable = user && !user.disabled && !began
  const checked = await passwords.check(password, usable ? user.passwordHash : undefined, call.signal)
  // Asked again: of many attempts at once, only as many as the limit allows may learn the answer.
  if (!usable || !checked.right || (await attempt.locked())) {
    const locked = await attempt.failed()
    // What was typed may be a password in the wrong field: only names that exist are written down.
    await data.audit.write(locked ? 'signin.locked' : 'signin.failed', user?.userName, {
      who: '-',
      userId: undefined,
      address: addressOf(call),
      correlationId: call.correlationId,
    })
    throw new Fault('Unauthorized', 'Invalid Username or Password')
  }
  await attempt.succeeded()
  if (checked.outdated) await renewHash(world, user, password, call.signal)
  return user
}

/** P1. What is in the way of it now is not at the next sign-in, and must not refuse this one. */
async function renewHash(world: ProviderContext, user: User, password: string, signal: AbortSignal): Promise<void> {
  const { data, passwords } = world
  if (user.passwordHash === undefined) return
  try {
    await data.users.setPassword(user.id, await passwords.hash(password, signal), { replaces: user.passwordHash })
  } catch (error) {
    if (!(error instanceof Fault)) throw error
  }
}

/** A4: each empty field by its name. */
function refuseEmpty(name: string, password: string): void {
  const fields: FieldFault[] = []
  if (name.trim() === '') fields.push(empty('UserName', 'User Name'))
  if (password.trim() === '') fields.push(empty('Password', 'Password'))
  if (fields.length === 0) return
  const lines = fields.map(({ FieldName, Message }) => `\n -- ${FieldName}: ${Message}`).join('')
  throw new Fault('BadRequest', `Validation failed: ${lines}`, { errorCode: 'ValidationException', fields })
}

const empty = (FieldName: string, spoken: string): FieldFault => ({
  ErrorCode: 'NotEmpty',
  FieldName,
  Message: `'${spoken}' must not be empty.`,
})
