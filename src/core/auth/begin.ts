import { randomUUID } from 'node:crypto'
import type { Actor, Data, RefreshRow, User } from '../store/index.ts'
import type { Lifetimes } from './lifetimes.ts'
import { newToken } from './tokens.ts'

export type Wanted = {
  /** RememberMe. */
  readonly permanent: boolean
  readonly kind: RefreshRow['kind']
  /** The hash of the session presented with the request, which ends (A8). */
  readonly endsSession: string | undefined
}

/** What a sign-in gives; each is told once and known to nobody afterwards. */
export type Begun = { readonly sessionId: string; readonly bearerToken: string; readonly refreshToken: string }

/** Makes a session, an access token and a refresh token of one family, in one transaction. */
export async function begin(
  data: Data,
  lifetimes: Lifetimes,
  now: number,
  user: User,
  wanted: Wanted,
  actor: Actor,
): Promise<Begun> {
  const [session, access, refresh] = [newToken('session'), newToken('access'), newToken('refresh')]
  const span = wanted.permanent ? 'permanent' : 'usual'
  const issued = { userId: user.id, epoch: user.epoch, familyId: randomUUID() }
  await data.sessions.begin(
    {
      session: {
        ...issued,
        hash: session.hash,
        permanent: wanted.permanent,
        createdAt: now,
        lastUsedAt: now,
        idleMs: lifetimes.session[span].idle,
        endsAt: now + lifetimes.session[span].absolute,
      },
      access: { ...issued, hash: access.hash, expiresAt: now + lifetimes.access },
      refresh: {
        ...issued,
        hash: refresh.hash,
        kind: wanted.kind,
        permanent: wanted.permanent,
        idleMs: lifetimes.refresh[span].idle,
        lastUsedAt: now,
        endsAt: now + lifetimes.refresh[span].absolute,
        usedAt: undefined,
        sealedSuccessor: undefined,
      },
      endsSession: wanted.endsSession,
    },
    actor,
  )
  return { sessionId: session.text, bearerToken: access.text, refreshToken: refresh.text }
}
