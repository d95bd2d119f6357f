import { Fault } from '../errors.ts'
import type { GetAccessToken, GetAccessTokenResponse } from '../protocol/index.ts'
import type { Call } from '../service.ts'
import type { Actor, RefreshRow, TokenRow } from '../store/index.ts'
import type { AuthWorld } from './authenticate.ts'
import { addressOf, usable } from './identify.ts'
import { ended } from './lifetimes.ts'
import { seal, unseal } from './seal.ts'
import { newToken, readToken } from './tokens.ts'

/** A11: a new access token; for a rotating family also a new refresh token (T4). */
export async function refresh(world: AuthWorld, request: GetAccessToken, call: Call): Promise<GetAccessTokenResponse> {
  const presented = request.RefreshToken?.trim() ?? ''
  const hash = readRefresh(presented)
  const { data, now } = world
  const row = await data.tokens.refresh(hash)
  const at = now()
  // One that was exchanged already is judged by its family's end alone: its reuse must be noticed (T4).
  if (!row || (row.usedAt === undefined ? ended(row, at) : at >= row.endsAt)) throw new Fault('Unauthorized')
  const user = await usable(data, row)
  if (!user) throw new Fault('Unauthorized')

  const made = newToken('access')
  const access: TokenRow = {
    hash: made.hash,
    userId: row.userId,
    epoch: row.epoch,
    familyId: row.familyId,
    expiresAt: Math.min(at + world.lifetimes.access, row.endsAt),
  }
  if (row.kind === 'fixed') {
    await data.tokens.renew(hash, access, at)
    return { accessToken: made.text }
  }
  const actor = {
    who: user.userName,
    userId: user.id,
    address: addressOf(call),
    correlationId: call.correlationId,
  }
  return await rotate(world, { presented, row, at, actor }, { text: made.text, access })
}

type Presented = {
  readonly presented: string
  readonly row: RefreshRow
  readonly at: number
  readonly actor: Actor
}

async function rotate(
  { data }: AuthWorld,
  { presented, row, at, actor }: Presented,
  made: { readonly text: string; readonly access: TokenRow },
): Promise<GetAccessTokenResponse> {
  const next = newToken('refresh')
  const pair = { accessToken: made.text, refreshToken: next.text }
  const successor: RefreshRow = {
    ...row,
    hash: next.hash,
    lastUsedAt: at,
    usedAt: undefined,
    sealedSuccessor: undefined,
  }
  const rotation = await data.tokens.rotate(
    row.hash,
    { access: made.access, refresh: successor, sealed: seal(presented, pair) },
    at,
    actor,
  )
  if (rotation.outcome === 'rotated') return pair
  if (rotation.outcome === 'repeated') return unseal(presented, rotation.sealedSuccessor)
  throw new Fault('Unauthorized')
}

/** The hash of a refresh token; 400 for what is none, an access token included (T5). */
function readRefresh(presented: string): string {
  if (presented === '') {
    throw field('NotEmpty', "'Refresh Token' must not be empty.")
  }
  const hash = readToken('refresh', presented)
  if (hash === undefined) throw field('InvalidValue', "'RefreshToken' is not a refresh token of this service")
  return hash
}

const field = (ErrorCode: string, Message: string): Fault =>
  new Fault('BadRequest', Message, {
    errorCode: ErrorCode === 'NotEmpty' ? 'ValidationException' : undefined,
    fields: [{ ErrorCode, FieldName: 'RefreshToken', Message }],
  })
