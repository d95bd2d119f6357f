import type { OperationSpec } from '../protocol/index.ts'
import type { Described } from './described.ts'
import type { Json } from './open-json.ts'

const schemes: Json = {
  bearer: { type: 'http', scheme: 'bearer', description: 'BearerToken of a sign-in, or a key' },
  session: { type: 'apiKey', in: 'header', name: 'X-ss-id', description: 'SessionId of a sign-in' },
  rememberedSession: {
    type: 'apiKey',
    in: 'header',
    name: 'X-ss-pid',
    description: 'SessionId of a sign-in with RememberMe, beside X-ss-opt: perm',
  },
  sessionKind: { type: 'apiKey', in: 'header', name: 'X-ss-opt', description: 'perm, beside X-ss-pid' },
  sessionCookie: { type: 'apiKey', in: 'cookie', name: 'ss-id', description: 'Set by a sign-in' },
  rememberedCookie: {
    type: 'apiKey',
    in: 'cookie',
    name: 'ss-pid',
    description: 'Set by a sign-in with RememberMe, beside ss-opt=perm',
  },
  kindCookie: { type: 'apiKey', in: 'cookie', name: 'ss-opt', description: 'perm, beside ss-pid' },
  tokenCookie: { type: 'apiKey', in: 'cookie', name: 'ss-tok', description: 'A BearerToken as a cookie' },
}

export const securitySchemes = ({ basic }: Described): Json => ({
  ...schemes,
  ...(basic ? { basic: { type: 'http', scheme: 'basic', description: 'For one request; begins no session' } } : {}),
})

/** Ways to be signed in, any of which will do; the names in the lists are the roles that are asked for. No row: nobody has to be. */
export function security({ basic }: Described, row?: OperationSpec): readonly Json[] {
  const caller = row?.caller ?? 'anyone'
  const roles = typeof caller === 'string' && caller !== 'anyone' ? [caller] : []
  const ways = [
    ['bearer'],
    ['session'],
    ['rememberedSession', 'sessionKind'],
    ['sessionCookie'],
    ['rememberedCookie', 'kindCookie'],
    ['tokenCookie'],
    ...(basic ? [['basic']] : []),
  ].map((names) => Object.fromEntries(names.map((name) => [name, roles])))
  return caller === 'anyone' ? [{}, ...ways] : ways
}
