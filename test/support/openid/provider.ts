import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import type { ServerCertificate } from '../servers/certs.ts'

export const clientId = 'svc-server'
export const clientSecret = 'the secret: of svc/+%'
/** A client without a secret, as the command line is. */
export const publicClient = 'svc-cli'
/** Another service of the same provider. */
export const otherClient = 'another-service'
export const audience = 'urn:example:svc'

export type Person = { readonly sub: string } & Readonly<Record<string, unknown>>
export const erin: Person = {
  sub: 'erin-1',
  preferred_username: 'erin',
  name: 'Erin Example',
  email: 'erin@example.org',
  email_verified: true,
  groups: ['ops-admins', 'everyone'],
}

type SigningKey = { readonly privateKey: CryptoKey; readonly jwk: JWK }
export const newKey = async (alg: string, kid: string): Promise<SigningKey> => {
  const { privateKey } = await generateKeyPair(alg, { extractable: true })
  return { privateKey, jwk: { ...(await exportJWK(privateKey)), kid, alg, use: 'sig' } }
}

export type OpenIdServer = {
  readonly issuer: string
  readonly port: number
  /** The keys that it publishes now. */
  readonly keys: () => readonly SigningKey[]
  /** Publishes other keys and signs with the first of them. */
  readonly rotate: (keys: readonly SigningKey[]) => Promise<void>
  /** Where it may send browsers back to. */
  readonly allow: (redirects: readonly string[]) => void
  /** Method and path of every request so far. */
  readonly requests: string[]
  /** Who signs in, without being asked. */
  signsIn: Person
  /** Answers the next requests instead of the provider. Returns whether it did. */
  intercept: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined
  /** Signs claims with its first key, as the provider would. */
  readonly sign: (
    claims?: Readonly<Record<string, unknown>>,
    header?: Readonly<Record<string, unknown>>,
  ) => Promise<string>
  readonly close: () => Promise<void>
}

/** A real OpenID provider (oidc-provider) on a free port of 127.0.0.1. Its people sign in without a form. */
export async function startOpenId(
  options: {
    readonly tls?: ServerCertificate
    readonly redirects?: readonly string[]
    readonly at?: () => number
  } = {},
): Promise<OpenIdServer> {
  const { tls } = options
  let redirects: readonly string[] = ['https://svc.example.org/auth/corp']
  const server: Server = tls ? createTlsServer(tls) : createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const issuer = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`
  let keys: readonly SigningKey[] = [await newKey('RS256', 'rsa-1'), await newKey('ES256', 'ec-1')]
  const { default: Provider } = await import('oidc-provider')
  const make = () => {
    const provider = new Provider(issuer, {
      jwks: { keys: keys.map(({ jwk }) => jwk) },
      ttl: { AccessToken: 600, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
      cookies: { keys: ['only for the tests'] },
      conformIdTokenClaims: false,
      claims: {
        openid: ['sub'],
        profile: ['name', 'preferred_username', 'groups'],
        email: ['email', 'email_verified'],
      },
      clients: [
        {
          client_id: clientId,
          client_secret: clientSecret,
          grant_types: ['authorization_code', 'refresh_token'],
          response_types: ['code'],
          redirect_uris: [...redirects],
        },
        {
          client_id: publicClient,
          token_endpoint_auth_method: 'none',
          grant_types: ['authorization_code'],
          response_types: ['code'],
          redirect_uris: [...redirects],
        },
      ],
      pkce: { required: () => true },
      findAccount: () => ({ accountId: self.signsIn.sub, claims: () => ({ ...self.signsIn }) }),
      loadExistingGrant: async ({ oidc }) => {
        const { client, session } = oidc
        if (!client || !session?.accountId) return undefined
        const grant = new provider.Grant({ accountId: session.accountId, clientId: client.clientId })
        grant.addOIDCScope('openid profile email offline_access')
        await grant.save()
        return grant
      },
      interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
      features: {
        devInteractions: { enabled: false },
        revocation: { enabled: true, allowedPolicy: () => true },
        introspection: { enabled: true, allowedPolicy: () => true },
      },
    })
    return provider
  }
  let provider = make()
  const self: OpenIdServer = {
    issuer,
    port,
    keys: () => keys,
    rotate: async (next) => {
      keys = next
      provider = make()
    },
    allow: (allowed) => {
      redirects = allowed
      provider = make()
    },
    requests: [],
    signsIn: erin,
    intercept: undefined,
    sign: async (claims = {}, header = {}) => {
      const [key] = keys
      if (!key) throw new Error('there is no key')
      const now = Math.floor(Date.now() / 1_000)
      const all = { iss: issuer, aud: clientId, iat: now, exp: now + 300, ...erin, ...claims }
      return await new SignJWT(all as never)
        .setProtectedHeader({ alg: key.jwk.alg ?? 'RS256', kid: key.jwk.kid ?? '', ...header })
        .sign(key.privateKey)
    },
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  server.on('request', (request, response) => {
    self.requests.push(`${request.method} ${request.url}`)
    if (self.intercept?.(request, response)) return
    if (request.url?.startsWith('/interaction/')) {
      const result = { login: { accountId: self.signsIn.sub } }
      provider
        .interactionFinished(request, response, result, { mergeWithLastSubmission: true })
        .catch((error: unknown) => {
          response.writeHead(500).end(String(error))
        })
      return
    }
    void provider.callback()(request, response)
  })
  return self
}
