import { timingSafeEqual } from 'node:crypto'
import { Fault } from '../../../base/errors.ts'
import type { Authenticate } from '../../../protocol/index.ts'
import type { Call } from '../../../protocol/service/service.ts'
import { nonceLivesMs, type User } from '../../../store/index.ts'
import { hasProof, makeNonce, nonceMadeAt, opaqueOf, type Proof, proofOfBody, proofOfHeader } from '../digest/proof.ts'
import { type Algorithm, algorithms, digestResponse, realm } from '../digest/secret.ts'
import { verifyUser } from '../verify.ts'
import type { Provider, ProviderContext, VerifiedUser, WaysToSignIn } from './provider.ts'

/** Signs in by HTTP Digest (A12, RFC 7616), from the body or from the Authorization header. */
const digest: Provider = { signIn, challenges }
export default digest

/** The clocks of the nodes that share a store may differ by this much. Milliseconds. */
const skewMs = 60_000

async function signIn(
  context: ProviderContext,
  request: Authenticate,
  call: Pick<Call, 'caller' | 'correlationId' | 'signal' | 'signed'>,
): Promise<VerifiedUser> {
  const { data, ways } = context
  const { signed } = call
  const proof = signed && proofOf(request, signed)
  if (!signed || !proof || !accepted(ways).includes(proof.algorithm)) throw refused()
  const key = await data.digest.nonceKey()
  const madeAt = nonceMadeAt(key, proof.nonce)
  // Without a nonce of this store, no digest can be right, and whoever sends one learns nothing about the secret.
  if (madeAt === undefined || (proof.opaque !== undefined && proof.opaque !== opaqueOf(key))) throw refused()
  const { user, settles } = await verifyUser(
    context,
    {
      name: proof.userName,
      how: 'digest',
      compare: (user) => compare(context, user, proof, signed.method),
      // Says that the nonce is stale only to whoever knows the secret.
      accept: async (user, { sha256 }) => {
        const age = context.now() - madeAt
        const use = { userId: user.id, sha256, nonce: proof.nonce, madeAt, nc: Number.parseInt(proof.nc, 16) }
        if (age > nonceLivesMs || age < -skewMs || !(await data.digest.use(use))) throw refused('stale')
      },
      refusal: refused,
    },
    call,
  )
  return { ...user, settles }
}

/**
 * The proof that the caller presents. Undefined when it can never sign anybody in. Throws BadRequest when the digest is
 * for another request (RFC 7616, 3.4.6): a proxy that changes the path must not go unnoticed.
 */
function proofOf(request: Authenticate, signed: NonNullable<Call['signed']>): Proof | undefined {
  const inBody = hasProof(request)
  const proof = inBody ? proofOfBody(request) : proofOfHeader(signed)
  // A name in the body beside a digest in the header could be another user's.
  if (!proof || (request.UserName !== undefined && request.UserName !== proof.userName)) return undefined
  const [path] = signed.target.split('?', 1)
  if (proof.uri === (inBody ? path : signed.target)) return proof
  throw new Fault('BadRequest', 'The digest is for another request: uri must be the target of this one')
}

const accepted = ({ digestMd5 }: WaysToSignIn): readonly Algorithm[] =>
  (Object.keys(algorithms) as Algorithm[]).filter((name) => digestMd5 || name !== 'MD5')

/** A secret that no password gives, for the same work as with a real one (P2). */
const nobody = { 'SHA-256': '-'.repeat(64), MD5: '-'.repeat(32) } as const

async function compare({ data }: ProviderContext, user: User | undefined, proof: Proof, method: string) {
  const stored = await data.digest.secret(user?.id ?? '')
  // The client hashes the name as typed, so only the exact name can be right.
  const own = stored?.realm === realm && user?.userName === proof.userName ? stored : undefined
  const { algorithm } = proof
  const secret = own && { 'SHA-256': own.sha256, MD5: own.md5 }[algorithm]
  const expected = digestResponse(algorithm, secret ?? nobody[algorithm], { ...proof, method })
  const same = timingSafeEqual(Buffer.from(expected), Buffer.from(proof.response))
  const forbidden = own !== undefined && !own.forAdmin && user?.roles.includes('Admin') === true
  return {
    right: same && own !== undefined && !forbidden,
    reason: forbidden ? 'the user is Admin, and their digest secret is not for Admins' : undefined,
    sha256: own?.sha256 ?? '',
  }
}

const refused = (challenge: 'digest' | 'stale' = 'digest'): Fault =>
  new Fault('Unauthorized', 'Invalid Username or Password', { challenge })

/** One challenge for each algorithm, the strongest first, all with the same new nonce. */
async function challenges(
  { data, now, ways }: Pick<ProviderContext, 'data' | 'now' | 'ways'>,
  stale: boolean,
): Promise<readonly string[]> {
  const key = await data.digest.nonceKey()
  const common = `nonce="${makeNonce(key, now())}", opaque="${opaqueOf(key)}", charset=UTF-8${stale ? ', stale=true' : ''}`
  return accepted(ways).map((name) => `Digest realm="${realm}", qop="auth", algorithm=${name}, ${common}`)
}
