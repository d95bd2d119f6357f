import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair } from 'jose'
import type { ServerCertificate } from '../servers/certs.ts'

/** The public client that svc is there. */
export const svcClient = 'svc'

export type PeopleProvider = {
  readonly issuer: string
  /** Method and path, without the query, of every request so far. */
  readonly requests: () => readonly string[]
  /** The body of every request to the token endpoint, and its answer. */
  readonly exchanges: () => readonly {
    readonly form: URLSearchParams
    readonly status: number
    readonly body: string
  }[]
  readonly close: () => Promise<void>
}

/**
 * A real OpenID provider (oidc-provider) on 127.0.0.1, at which people sign in: any name with any password, on pages
 * that work without scripts.
 */
export async function startPeopleProvider({
  device = true,
  tls,
  port: fixedPort = 0,
}: {
  readonly device?: boolean
  readonly tls?: ServerCertificate
  readonly port?: number
} = {}): Promise<PeopleProvider> {
  const server: Server = tls ? createTlsServer(tls) : createServer()
  server.listen(fixedPort, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const issuer = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`
  const { default: Provider } = await import('oidc-provider')
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'one', alg: 'RS256', use: 'sig' }] },
    ttl: {
      AccessToken: 600,
      AuthorizationCode: 60,
      DeviceCode: 300,
      Grant: 600,
      IdToken: 600,
      Interaction: 600,
      Session: 600,
    },
    cookies: { keys: ['only for the tests'] },
    clients: [
      {
        client_id: svcClient,
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', ...(device ? [deviceGrant] : [])],
        // A native client: on any port.
        redirect_uris: ['http://127.0.0.1/callback', 'http://127.0.0.1/auth/corp'],
        response_types: ['code'],
      },
    ],
    claims: { openid: ['sub'], email: ['email'], profile: ['preferred_username', 'groups'] },
    conformIdTokenClaims: false,
    findAccount: (_, sub) => ({
      accountId: sub,
      claims: () => ({ sub, email: `${sub}@example.org`, preferred_username: sub, groups: ['ops'] }),
    }),
    features: { devInteractions: { enabled: true }, deviceFlow: { enabled: device } },
  })
  // oidc-provider leaves the interval out, which means five seconds for each question of svc.
  provider.use(async (ctx, next) => {
    await next()
    if (ctx.oidc?.route === 'device_authorization') Object.assign(ctx.body as object, { interval: 1 })
  })
  const requests: string[] = []
  const exchanges: { form: URLSearchParams; status: number; body: string }[] = []
  const handle = provider.callback()
  server.on('request', (request, response) => {
    const path = (request.url ?? '').replace(/\?.*$/, '')
    requests.push(`${request.method} ${path}`)
    if (path === '/token') {
      let sent = ''
      request.on('data', (chunk) => (sent += String(chunk)))
      let body = ''
      const end = response.end.bind(response)
      response.end = ((chunk?: unknown, ...more: never[]) => {
        if (typeof chunk === 'string' || Buffer.isBuffer(chunk)) body += String(chunk)
        exchanges.push({ form: new URLSearchParams(sent), status: response.statusCode, body })
        return end(chunk as string, ...more)
      }) as typeof response.end
    }
    void handle(request, response)
  })
  return {
    issuer,
    requests: () => requests,
    exchanges: () => exchanges,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
