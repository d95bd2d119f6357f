import { randomUUID } from 'node:crypto'
import { looksLikeAdmin } from '../../names.ts'
import { userNameProblems } from '../names.ts'
import type { OpenIdSettings } from '../providers/provider.ts'
import { type JsonObject, member } from './json.ts'

/** Values of the claim that are read. Providers put at most a few hundred groups into a token. */
const mostValues = 1_000

/** The roles that the claims give. */
export function rolesFrom(settings: OpenIdSettings, claims: JsonObject): readonly string[] {
  const { roles } = settings
  if (!roles) return []
  const value = at(claims, roles.claim)
  const values: readonly unknown[] = Array.isArray(value) ? value.slice(0, mostValues) : [value]
  const mapped = values.flatMap((one) => {
    const role = typeof one === 'string' ? member(roles.map, one) : undefined
    return typeof role === 'string' ? [role] : []
  })
  return [...new Set(mapped)]
}

/** A claim by its name, which may contain dots as `https://example.com/roles` does, or by a path. */
function at(claims: JsonObject, path: string): unknown {
  const direct = member(claims, path)
  if (direct !== undefined) return direct
  return path.split('.').reduce<unknown>((value, step) => member(value, step), claims)
}

/**
 * Names for a new user, the best first. The provider has verified an e-mail address only if it says so. Users of a
 * provider often choose their own `preferred_username`: one with a colon could pass for a name that svc gives to
 * somebody of another provider, and one that reads like Admin for an administrator.
 */
export function namesFrom(settings: OpenIdSettings, claims: JsonObject): readonly string[] {
  const { preferred_username: preferred, email, email_verified: verified, sub } = claims
  const chosen = typeof preferred === 'string' && !isReserved(preferred) ? preferred : undefined
  const own = [chosen, verified === true ? email : undefined].flatMap((name) =>
    typeof name === 'string' ? [name.normalize('NFC')] : [],
  )
  const fallback = `${settings.name}:${String(sub)}`
  return [...own, fallback, `${settings.name}:${randomUUID()}`].filter(
    (name) => name.length <= maxName && userNameProblems('UserName', name).length === 0,
  )
}

const isReserved = (name: string): boolean =>
  name.normalize('NFKC').includes(':') || name.toLowerCase() === 'admin' || looksLikeAdmin(name)

const maxName = 128

export function displayNameFrom({ name }: JsonObject): string | undefined {
  return typeof name === 'string' && name.length <= maxName && userNameProblems('DisplayName', name).length === 0
    ? name
    : undefined
}
