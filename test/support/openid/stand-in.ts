import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createRemoteJWKSet, jwtVerify } from 'jose'

export type StandIn = {
  readonly url: string
  /** Method and path of every request, and the parsed body. */
  readonly requests: readonly { readonly path: string; readonly body: Readonly<Record<string, unknown>> }[]
  /** The subjects of the tokens that it has accepted. */
  readonly accepted: readonly string[]
  readonly close: () => Promise<void>
}

/** Simulates the server of svc with one OpenID provider: it lists it, and verifies the ID tokens that it receives. */
export async function startStandIn(meta: Readonly<Record<string, string>>): Promise<StandIn> {
  const requests: { path: string; body: Record<string, unknown> }[] = []
  const accepted: string[] = []
  const authProviders = [
    { name: 'credentials', type: 'credentials' },
    { name: 'corp', type: 'openid', label: 'Corporation', meta },
    { name: 'badge', type: 'saml' },
  ]
  const server = createServer(async (request, response) => {
    let sent = ''
    for await (const chunk of request) sent += String(chunk)
    const path = request.url ?? ''
    const body = sent === '' ? {} : (JSON.parse(sent) as Record<string, unknown>)
    requests.push({ path: `${request.method} ${path}`, body })
    const answer = (status: number, json: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json))
    }
    if (path === '/metadata/app.json') return answer(200, { plugins: { auth: { authProviders } } })
    if (path === '/auth/corp') {
      const { issuer = '', clientId = '' } = meta
      try {
        const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`))
        const { payload } = await jwtVerify(String(body['AccessToken']), keys, { issuer, audience: clientId })
        accepted.push(payload.sub ?? '')
        return answer(200, {
          UserName: payload.sub,
          Roles: ['Deploy'],
          BearerToken: 'bearer-of-svc',
          RefreshToken: 'r',
        })
      } catch {
        return answer(401, { ResponseStatus: { ErrorCode: 'Unauthorized', Message: 'The token is not accepted' } })
      }
    }
    return answer(200, {})
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    accepted,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
