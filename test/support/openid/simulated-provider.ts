import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Answers = Readonly<Record<string, (issuer: string) => unknown>>

export type SimulatedProvider = {
  readonly issuer: string
  readonly requests: readonly { readonly path: string; readonly form: URLSearchParams }[]
  readonly close: () => Promise<void>
}

/** The endpoints of a simulated provider. */
export const configuration = (issuer: string) => ({
  issuer,
  authorization_endpoint: `${issuer}/auth`,
  token_endpoint: `${issuer}/token`,
  device_authorization_endpoint: `${issuer}/device/auth`,
})

/** Simulates a provider: texts are sent as they are, objects as JSON, with the status 400 if they have an `error`. */
export async function startSimulatedProvider(answers: Answers): Promise<SimulatedProvider> {
  const requests: { path: string; form: URLSearchParams }[] = []
  const all: Answers = { '/.well-known/openid-configuration': configuration, ...answers }
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const path = (request.url ?? '').replace(/\?.*$/, '')
    requests.push({ path, form: new URLSearchParams(body) })
    const value = all[path]?.(issuer)
    const refuses = typeof value === 'object' && value !== null && 'error' in value
    response.writeHead(value === undefined ? 404 : refuses ? 400 : 200, { 'content-type': 'application/json' })
    response.end(typeof value === 'string' ? value : JSON.stringify(value ?? {}))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    issuer,
    requests,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** A JWT with these claims, and a signature that nobody has made. */
export const unsigned = (claims: Readonly<Record<string, unknown>>): string =>
  [{ alg: 'RS256' }, claims, 'signature']
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
