import { type CheckContext, includes, monitorKind, type OwnSignIn } from '../../engine/index.ts'
import { Fault } from '../../errors.ts'
import { evaluateSignIn, ownProblem, type SignInSeen } from './own-sign-in.ts'

type Question = readonly [check: string, ask: (own: OwnSignIn, context: CheckContext) => Promise<SignInSeen>]

const basic: readonly Question[] = [
  ['administrator', async (own) => ({ see: 'administrator', any: await own.anyAdmin() })],
]
const standard: readonly Question[] = [
  [
    'look-up',
    async (own, { now }) => {
      const start = now()
      await own.lookUp()
      return { see: 'timed', check: 'look-up', ms: now() - start }
    },
  ],
  [
    'password hash',
    async (own, { now, signal }) => {
      const start = now()
      try {
        const toldApart = await own.hash(signal)
        return { see: 'hashed', toldApart, ms: now() - start }
      } catch (error) {
        if (error instanceof Fault && error.fault === 'Unavailable') return { see: 'busy' }
        throw error
      }
    },
  ],
]

/** svc's own sign-in: what stands for an identity server while none is configured. Nobody signs in, nothing is written. */
export default monitorKind({
  name: 'sign-in',
  title: "svc's own accounts and sign-in",
  settings: {},
  checks: [
    { name: 'store', depth: 'Basic', doc: 'The store of the accounts opens and answers, in time' },
    { name: 'administrator', depth: 'Basic', doc: 'Told when nobody who may sign in is Admin' },
    { name: 'look-up', depth: 'Standard', doc: 'What a sign-in reads can be read, in time' },
    { name: 'password hash', depth: 'Standard', doc: 'A made-up password is hashed and told from another, in time' },
  ],
  internal: true,
  async *observe(_, context): AsyncGenerator<SignInSeen> {
    const { ownSignIn: own, now } = context
    context.step('store')
    if (!own) return yield { see: 'none' }
    const start = now()
    try {
      await own.store(context.signal)
    } catch (error) {
      if (context.signal.aborted) throw error
      // Nothing else can be asked of a store that is not there.
      return yield ownProblem('store', error, now() - start)
    }
    yield { see: 'timed', check: 'store', ms: now() - start }
    for (const [check, ask] of [...basic, ...(includes(context.mode, 'Standard') ? standard : [])]) {
      context.step(check)
      const since = now()
      try {
        yield await ask(own, context)
      } catch (error) {
        if (context.signal.aborted) throw error
        yield ownProblem(check, error, now() - since)
      }
    }
  },
  evaluate: evaluateSignIn,
})
