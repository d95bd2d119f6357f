import { emptyField, Fault, type FieldFault } from '../../../base/errors.ts'
import type { Authenticate } from '../../../protocol/index.ts'
import type { Call } from '../../../protocol/service/service.ts'
import type { User } from '../../../store/index.ts'
import { verifyUser } from '../verify.ts'
import type { Provider, ProviderContext, VerifiedUser } from './provider.ts'

/** Signs in with a user name or e-mail address and a password. */
const credentials: Provider = { signIn }
export default credentials

async function signIn(
  context: ProviderContext,
  request: Authenticate,
  call: Pick<Call, 'caller' | 'correlationId' | 'signal'>,
): Promise<VerifiedUser> {
  const { UserName: name = '', Password: password = '' } = request
  refuseEmpty(name, password)
  const { user, compared, settles } = await verifyUser(
    context,
    {
      name,
      inTurn: context.passwords.inTurn,
      compare: (user) => context.passwords.check(password, user?.passwordHash),
      refusal: () => new Fault('Unauthorized', 'Invalid Username or Password'),
    },
    call,
  )
  if (compared.outdated) await renewHash(context, user, password, call.signal)
  return { ...user, settles }
}

/**
 * Rehashes the password with the current parameters (P1). Errors must not refuse this sign-in; the next one tries
 * again.
 */
async function renewHash(context: ProviderContext, user: User, password: string, signal: AbortSignal): Promise<void> {
  const { data, passwords } = context
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
