import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { emptyField, Fault, type FieldFault } from '../../base/errors.ts'
import type { GetAccessToken, GetAccessTokenResponse } from '../../protocol/index.ts'
import type { Call } from '../../protocol/service/service.ts'
import type { Actor, RefreshRow, TokenRow } from '../../store/index.ts'
import type { AuthContext } from './authenticate.ts'
import { addressOf, usable } from './identify.ts'
import { ended, newToken, readToken } from './tokens.ts'

/** The result of a rotation. A caller that presents the same token again within a few seconds gets it again (T4). */
export type TokenPair = { readonly accessToken: string; readonly refreshToken: string }

const algorithm = 'aes-256-gcm'
const saltBytes = 16
const nonceBytes = 12
const tagBytes = 16

/**
 * Encrypts the pair so that only the presented token can decrypt it. The store knows only that token's hash, so the
 * pair is useless to a thief of the store.
 */
export function seal(presented: string, pair: TokenPair): string {
  const salt = randomBytes(saltBytes)
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, keyFrom(presented, salt), nonce)
  const text = Buffer.concat([cipher.update(JSON.stringify(pair), 'utf8'), cipher.final()])
  return Buffer.concat([salt, nonce, cipher.getAuthTag(), text]).toString('base64url')
}

/** Decrypts the pair. Throws for another token, and for a changed text. */
export function unseal(presented: string, sealed: string): TokenPair {
  const bytes = Buffer.from(sealed, 'base64url')
  const salt = bytes.subarray(0, saltBytes)
  const nonce = bytes.subarray(saltBytes, saltBytes + nonceBytes)
  const tag = bytes.subarray(saltBytes + nonceBytes, saltBytes + nonceBytes + tagBytes)
  const decipher = createDecipheriv(algorithm, keyFrom(presented, salt), nonce, { authTagLength: tagBytes })
  decipher.setAuthTag(tag)
  const text = Buffer.concat([decipher.update(bytes.subarray(saltBytes + nonceBytes + tagBytes)), decipher.final()])
  return JSON.parse(text.toString('utf8')) as TokenPair
}

const keyFrom = (presented: string, salt: Buffer): Buffer =>
  Buffer.from(hkdfSync('sha256', presented, salt, 'svc refresh successor', 32))

/** Issues a new access token (A11), and for a rotating family also a new refresh token (T4). */
export async function refresh(
  context: AuthContext,
  request: GetAccessToken,
  call: Call,
): Promise<GetAccessTokenResponse> {
  const presented = request.RefreshToken?.trim() ?? ''
  const hash = readRefresh(presented)
  const { data, now } = context
  const row = await data.tokens.refresh(hash)
  const at = now()
  // For an exchanged token only the end of its family counts: its reuse must be noticed (T4).
  if (!row || (row.usedAt === undefined ? ended(row, at) : at >= row.endsAt)) throw new Fault('Unauthorized')
  const user = await usable(data, row)
  if (!user) throw new Fault('Unauthorized')
  if (row.kind === 'fixed' && context.refresh === 'rotating') {
    throw new Fault('Unauthorized', 'This refresh token is not rotating, as serve.refresh requires: sign in again')
  }

  const made = newToken('access')
  const access: TokenRow = {
    hash: made.hash,
    userId: row.userId,
    epoch: row.epoch,
    familyId: row.familyId,
    expiresAt: Math.min(at + context.lifetimes.access, row.endsAt),
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
  return await rotate(context, { presented, row, at, actor }, { text: made.text, access })
}

type Presented = {
  readonly presented: string
  readonly row: RefreshRow
  readonly at: number
  readonly actor: Actor
}

async function rotate(
  { data }: AuthContext,
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

/** The hash of a refresh token. Throws a fault with status 400 for anything else, including an access token (T5). */
function readRefresh(presented: string): string {
  if (presented === '') {
    throw refused(emptyField('RefreshToken', 'Refresh Token'))
  }
  const hash = readToken('refresh', presented)
  if (hash === undefined) {
    const Message = "'RefreshToken' is not a refresh token of this service"
    throw refused({ ErrorCode: 'InvalidValue', FieldName: 'RefreshToken', Message })
  }
  return hash
}

const refused = (field: FieldFault): Fault =>
  new Fault('BadRequest', field.Message, {
    errorCode: field.ErrorCode === 'NotEmpty' ? 'ValidationException' : undefined,
    fields: [field],
  })
