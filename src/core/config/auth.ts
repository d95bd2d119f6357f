import { isLoopbackHost } from '../base/loopback.ts'
import { nameMistake } from '../base/names.ts'
import {
  isMap,
  type Problem,
  place,
  readSettings,
  type SettingsContext,
  type SettingsSpec,
  type Values,
} from '../base/settings/index.ts'

/** One OpenID provider. */
export const openIdSettings = {
  name: {
    type: 'text',
    required: true,
    pattern: /^[a-z][a-z0-9-]{0,31}$/,
    doc: 'Lower-case letters, digits and hyphens, at most 32, the first one a letter. Users sign in at /auth/NAME',
  },
  issuer: {
    type: 'url',
    protocols: ['https', 'http'],
    required: true,
    doc: 'Exactly as in its tokens (`iss`), without /.well-known/; http:// for loopback only',
  },
  clientId: { type: 'text', required: true, doc: 'Client ID of this server at the provider' },
  clientSecret: {
    type: 'secret',
    doc: 'Secret of the client. Without it, svc is a public client, and opaque access tokens are not accepted',
  },
  audience: {
    type: 'text',
    doc: 'Also accept access tokens with this audience (`aud`). Tokens for `clientId` are always accepted',
  },
  scope: {
    type: 'text',
    default: 'openid profile email',
    doc: 'Scopes that a browser sign-in requests; includes openid',
  },
  label: { type: 'text', doc: 'Display name of the provider in clients; default: its name' },
  roles: {
    type: 'group',
    fields: {
      claim: {
        type: 'text',
        required: true,
        doc: 'Claim with the groups or roles of the user: a name, or a path such as realm_access.roles',
      },
      map: {
        type: 'map',
        required: true,
        doc: 'A role of svc for each value of the claim. Other values give no role',
      },
    },
    doc: 'Which roles a sign-in gets from the claims of its token. Default: none',
  },
  tolerance: {
    type: 'duration',
    default: 60_000,
    doc: 'How far the clock of the provider may differ from that of this machine, at most 5m',
  },
  caFile: { type: 'text', file: 'certificates', doc: 'PEM file of CAs to trust in addition to those of the system' },
} as const satisfies SettingsSpec

/** Further ways to sign in. Without this section, passwords are the only one. */
export const authSettings = {
  digest: {
    type: 'flag',
    default: false,
    doc: 'Whether users with a digest secret may sign in by HTTP Digest (RFC 7616)',
  },
  digestMd5: {
    type: 'flag',
    default: true,
    doc: 'Whether digests may use MD5, which old clients need; without it, only SHA-256',
  },
  openid: { type: 'groups', fields: openIdSettings, doc: 'OpenID Connect providers whose users may sign in' },
} as const satisfies SettingsSpec

export type AuthConfig = Values<typeof authSettings>

/** Names below /auth/ that mean something else. */
const reserved: ReadonlySet<string> = new Set(['credentials', 'login', 'logout', 'basic', 'digest'])
const maxTolerance = 300_000

/** Reads the `auth:` section. Paths of problems are relative to it. */
export function readAuth(
  raw: unknown,
  context: SettingsContext,
): { readonly values: AuthConfig; readonly problems: readonly Problem[]; readonly warnings: readonly Problem[] } {
  const { values, problems, warnings } = readSettings(authSettings, raw, context)
  const entries: readonly unknown[] = isMap(raw) && Array.isArray(raw['openid']) ? raw['openid'] : []
  const more: Problem[] = []
  const openid = entries.flatMap((entry, index) => {
    // A secret in the keychain is bound to the host of its own provider.
    const own: SettingsContext = { ...context, target: () => targetOf(entry) }
    const read = readSettings(openIdSettings, entry, own)
    if (read.problems.length > 0) return []
    more.push(...mistakesOf(read.values, entries.slice(0, index), ['openid', index], context))
    return [read.values]
  })
  return {
    values: values.openid === undefined ? values : { ...values, openid },
    problems: [...problems, ...more],
    warnings,
  }
}

function targetOf(entry: unknown): { readonly host: string; readonly port: number } | undefined {
  const issuer = isMap(entry) && typeof entry['issuer'] === 'string' ? URL.parse(entry['issuer']) : null
  if (issuer === null) return undefined
  return { host: issuer.hostname, port: Number(issuer.port || (issuer.protocol === 'http:' ? 80 : 443)) }
}

function mistakesOf(
  { name, issuer, scope, roles, tolerance }: Values<typeof openIdSettings>,
  before: readonly unknown[],
  path: readonly (string | number)[],
  context: SettingsContext,
): readonly Problem[] {
  const problems: Problem[] = []
  const at = place(path, { problems, warnings: [], context })
  if (reserved.has(name)) at.in('name').report(`is ${name}, which is not free: choose another name`)
  if (before.some((entry) => isMap(entry) && entry['name'] === name)) {
    at.in('name').report(`is ${name}, as is that of another provider: choose another name`)
  }
  const url = new URL(issuer)
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname)) {
    at.in('issuer').report('begins with http://, which is for loopback only: use https://')
  }
  if (url.search !== '' || url.hash !== '' || url.username !== '') {
    at.in('issuer').report('must have neither a query, a fragment nor a user name')
  }
  if (!scope.split(' ').includes('openid')) at.in('scope').report('must contain openid')
  if (tolerance > maxTolerance) at.in('tolerance').report('is longer than 5m: synchronize the clocks instead')
  for (const [value, role] of Object.entries(roles?.map ?? {})) {
    const mistake = role.trim() === '' ? 'must not be empty' : nameMistake(role)
    if (mistake !== undefined) at.in('roles').in('map').in(value).report(mistake)
  }
  return problems
}
