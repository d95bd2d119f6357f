import { Fault } from '../../../core/base/errors.ts'
import { isObject } from '../../../core/base/json.ts'
import { sanitizeAndCut } from '../../../core/base/sanitize.ts'
import type { ClientOptions } from '../../../core/client/index.ts'
import type { Call } from '../../../core/protocol/service/service.ts'
import { askAppDocument } from '../announced.ts'
import { readJson } from './json.ts'

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
  const match = listed.find((one) => one.name.toLowerCase() === name.toLowerCase())
  if (!match) {
    const names = listed.map((one) => inMessage(one.name))
    throw new Fault('Usage', `${server} has no sign-in provider "${inMessage(name)}"`, {
      hints: [names.length > 0 ? `Its providers: ${names.join(', ')}` : 'It lists no provider.'],
    })
  }
  const { type, meta } = match
  if (type === 'credentials') return { kind: 'password' }
  const { issuer, clientId, scope } = meta
  if (type !== 'openid' || !isText(issuer) || !isText(clientId)) {
    throw new Fault('Usage', `svc cannot sign in through the provider "${inMessage(name)}" of ${server}`, {
      hints: [
        type === 'openid'
          ? 'The server does not report its issuer and client.'
          : `Its type is ${inMessage(type)}; svc supports openid and credentials.`,
      ],
    })
  }
  const scopes = isText(scope) ? scope.split(' ').filter((one) => one !== '') : []
  return {
    kind: 'openid',
    provider: { name: match.name, issuer, clientId, scope: [...new Set(['openid', ...scopes])].join(' ') },
  }
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '' && value.length <= 2_000
const inMessage = (text: string): string => sanitizeAndCut(text, 60)

type ListedProvider = {
  readonly name: string
  /** In lower case. */
  readonly type: string
  readonly meta: Readonly<Record<string, unknown>>
}

async function listProviders(connection: ClientOptions, call: Call): Promise<readonly ListedProvider[]> {
  const answer = await askAppDocument(connection, call, patience)
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
  const { auth } = isObject(plugins) ? plugins : {}
  const { authProviders } = isObject(auth) ? auth : {}
  if (!Array.isArray(authProviders)) throw unlisted()
  return authProviders.slice(0, maxProviders).flatMap((entry: unknown): readonly ListedProvider[] => {
    if (!isObject(entry) || !isText(entry['name'])) return []
    const { name, type = 'credentials', meta = {} } = entry
    return isText(type) && isObject(meta) ? [{ name, type: type.toLowerCase(), meta }] : []
  })
}
