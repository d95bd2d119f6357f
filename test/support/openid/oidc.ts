import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import type { ServerCertificate } from '../servers/certs.ts'

/** A client by client credentials, one with a password grant, and the account of that. */
export const client = { clientId: 'svc-probe', clientSecret: 'a secret: of the probe/+%' }
export const passwordClient = { clientId: 'svc-people', clientSecret: 'another secret of the probe' }
export const account = { user: 'probe@example.org', password: 'the account of the probe' }
export const resource = 'urn:example:orders'
/** Tokens for this resource are encrypted. */
export const sealedResource = 'urn:example:sealed'

export type OidcServer = {
  readonly port: number
  readonly issuer: string
  readonly address: string
  /** Method and path of every request so far. */
  readonly requests: () => readonly string[]
  /** Connections that it holds open at the moment. */
  readonly open: () => Promise<number>
  /** How many connections it has accepted. */
  readonly accepted: () => number
  /** How many requests have come with credentials. */
  readonly withCredentials: () => number
  /** Refresh tokens that were given and are still good for something. */
  readonly sessions: () => number
  readonly close: () => Promise<void>
}

async function privateKey(alg: 'RS256' | 'ES256', kid: string): Promise<JWK> {
  const { privateKey: key } = await generateKeyPair(alg, { extractable: true })
  return { ...(await exportJWK(key)), kid, alg, use: 'sig' }
}

/** A real OpenID provider (oidc-provider) on a free port of 127.0.0.1, over TLS with a certificate. */
export async function startOidc({ tls }: { readonly tls?: ServerCertificate } = {}): Promise<OidcServer> {
  const server: Server = tls ? createTlsServer(tls) : createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const issuer = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`
  const { default: Provider, errors } = await import('oidc-provider')
  const provider = new Provider(issuer, {
    jwks: { keys: [await privateKey('RS256', 'rsa-1'), await privateKey('ES256', 'ec-1')] },
    ttl: { AccessToken: 600, ClientCredentials: 600, Grant: 600, IdToken: 600, RefreshToken: 600 },
    cookies: { keys: ['only for the tests'] },
    clients: [
      {
        client_id: client.clientId,
        client_secret: client.clientSecret,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
      {
        client_id: passwordClient.clientId,
        client_secret: passwordClient.clientSecret,
        grant_types: ['client_credentials', 'password', 'refresh_token'],
        redirect_uris: [],
        response_types: [],
      },
    ],
    scopes: ['openid', 'offline_access', 'orders'],
    findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      revocation: { enabled: true, allowedPolicy: () => true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_, indicator) => {
          if (indicator !== resource && indicator !== sealedResource)
            throw new errors.InvalidTarget('nobody knows that resource')
          const encrypt = { alg: 'dir', enc: 'A128CBC-HS256', key: Buffer.alloc(32, 1) } as const
          const jwt = { sign: { alg: 'RS256' as const }, ...(indicator === sealedResource ? { encrypt } : {}) }
          return { scope: 'orders', accessTokenFormat: 'jwt', accessTokenTTL: 600, jwt }
        },
      },
    },
  })
  let sessions = 0
  provider.on('refresh_token.saved', () => {
    sessions += 1
  })
  provider.on('refresh_token.destroyed', () => {
    sessions -= 1
  })
  provider.registerGrantType(
    'password',
    async (ctx) => {
      const { client: asking, params } = ctx.oidc
      if (!asking || params?.username !== account.user || params.password !== account.password) {
        throw new errors.InvalidGrant('nobody signs in with that')
      }
      const scope = 'openid offline_access'
      const grant = new provider.Grant({ accountId: account.user, clientId: asking.clientId })
      grant.addOIDCScope(scope)
      const of = { accountId: account.user, client: asking, grantId: await grant.save(), gty: 'password', scope }
      const refresh = await new provider.RefreshToken(of as never).save()
      const access = new provider.AccessToken(of as never)
      const value = await access.save()
      ctx.body = { access_token: value, refresh_token: refresh, expires_in: access.expiration, token_type: 'Bearer' }
    },
    ['username', 'password', 'scope'],
  )
  const requests: string[] = []
  let accepted = 0
  let withCredentials = 0
  server.on('connection', () => {
    accepted += 1
  })
  const handle = provider.callback()
  server.on('request', (request, response) => {
    requests.push(`${request.method} ${request.url}`)
    if (request.headers.authorization !== undefined) withCredentials += 1
    void handle(request, response)
  })
  return {
    port,
    issuer,
    address: `127.0.0.1:${port}`,
    requests: () => requests,
    open: () =>
      new Promise((resolve, reject) => server.getConnections((error, n) => (error ? reject(error) : resolve(n)))),
    accepted: () => accepted,
    withCredentials: () => withCredentials,
    sessions: () => sessions,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
