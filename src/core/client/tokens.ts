import type { Operation } from '../protocol/index.ts'
import type { Received } from './exchange.ts'

/** Where newer servers put what older ones put into the body (C4): cookie → the answer's field. */
const cookieFields: Partial<Record<Operation, Readonly<Record<string, string>>>> = {
  authenticate: { 'ss-tok': 'BearerToken', 'ss-reftok': 'RefreshToken' },
  getAccessToken: { 'ss-tok': 'accessToken', 'ss-reftok': 'refreshToken' },
}

/** The answer, with the tokens that came as cookies; what stands in the body wins. */
export function withCookieTokens<R>(operation: Operation, response: R, { headers }: Received): R {
  const fields = cookieFields[operation]
  if (!fields) return response
  const given = response as Readonly<Record<string, unknown>>
  const taken = (headers['set-cookie'] ?? []).flatMap((line): [string, string][] => {
    const [pair = ''] = line.split(';', 1)
    const equals = pair.indexOf('=')
    const [name, value] = [pair.slice(0, Math.max(0, equals)).trim(), pair.slice(equals + 1).trim()]
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    return field === undefined || value === '' || given[field] ? [] : [[field, decoded(value)]]
  })
  return { ...response, ...Object.fromEntries(taken) }
}

function decoded(value: string): string {
  const bare = value.replace(/^"(.*)"$/, '$1')
  try {
    return decodeURIComponent(bare)
  } catch {
    return bare
  }
}
