import { type ClientOptions, openClient } from '../../core/client/index.ts'
import { Fault } from '../../core/errors.ts'
import { sanitizeAndCut } from '../../core/sanitize.ts'
import type { Call } from '../../core/service.ts'
import { isRecord, readJson } from './json.ts'

/** An OpenID provider through which a server signs users in. */
export type OpenIdProvider = {
  /** Its name at the server, as `--provider` takes it. */
  readonly name: string
  /** Exactly as the provider itself must name it. */
  readonly issuer: string
  readonly clientId: string
  /** Always contains `openid`. */
  readonly scope: string
}

/** How users sign in with a provider: with a password at the server, or at an OpenID provider. */
export type ProviderChoice =
  | { readonly kind: 'password' }
  | { readonly kind: 'openid'; readonly provider: OpenIdProvider }

/** Milliseconds for the request. */
const patience = 10_000
const maxProviders = 100

/**
 * Asks the server for its providers, and returns the one of that name, in any letter case. Rejects with `Fault` Usage
 * when there is none, and names those that there are.
 */
export async function chooseProvider(connection: ClientOptions, name: string, call: Call): Promise<ProviderChoice> {
  const server = connection.baseUrl
  const listed = await listProviders(connection, call)
  const found = listed.find((one) => String(one['name']).toLowerCase() === name.toLowerCase())
  if (!found) {
    const names = listed.map((one) => shown(one['name']))
    throw new Fault('Usage', `${server} has no sign-in provider "${shown(name)}"`, {
      hints: [names.length > 0 ? `Its providers: ${names.join(', ')}` : 'It lists no provider.'],
    })
  }
  const type = String(found['type'] ?? 'credentials').toLowerCase()
  if (type === 'credentials') return { kind: 'password' }
  const meta = isRecord(found['meta']) ? found['meta'] : {}
  const { issuer, clientId, scope } = meta
  if (type !== 'openid' || !isText(issuer) || !isText(clientId)) {
    throw new Fault('Usage', `svc cannot sign in through the provider "${shown(name)}" of ${server}`, {
      hints: [
        type === 'openid'
          ? 'The server does not report its issuer and client.'
          : `Its type is ${shown(type)}; svc supports openid and credentials.`,
      ],
    })
  }
  const scopes = isText(scope) ? scope.split(' ').filter((one) => one !== '') : []
  return {
    kind: 'openid',
    provider: { name: String(found['name']), issuer, clientId, scope: [...new Set(['openid', ...scopes])].join(' ') },
  }
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '' && value.length <= 2_000
const shown = (text: unknown): string => sanitizeAndCut(String(text), 60)

async function listProviders(connection: ClientOptions, call: Call): Promise<readonly Record<string, unknown>[]> {
  // No credential: the document is public.
  const { credential: _, ...options } = connection
  const client = openClient(options)
  try {
    const answer = await client.ask(
      { method: 'GET', path: '/metadata/app.json', headers: [], body: undefined },
      { ...call, timeoutMs: patience },
    )
    const unlisted = (): Fault =>
      new Fault('NoSuchOperation', `${connection.baseUrl} does not list its sign-in providers (${answer.status})`, {
        remoteStatus: answer.status,
        hints: [
          'svc reads them from /metadata/app.json.',
          'With a token of the provider: svc login … --provider NAME --token-stdin',
        ],
      })
    if (answer.status === 404) throw unlisted()
    if (answer.fault) throw answer.fault
    const document = readJson(answer.bytes)
    const { plugins } = document ?? {}
    const { auth } = isRecord(plugins) ? plugins : {}
    const { authProviders } = isRecord(auth) ? auth : {}
    if (!Array.isArray(authProviders)) throw unlisted()
    return authProviders.slice(0, maxProviders).filter(isRecord)
  } finally {
    client.close()
  }
}
