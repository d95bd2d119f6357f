import { timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Fault } from '../../../core/base/errors.ts'
import { type DiscoveredProvider, printable } from './issuer.ts'
import { refusal } from './tokens.ts'

export type Callback = {
  /** Where the provider sends the browser: on 127.0.0.1, with a random port. */
  readonly redirectUri: string
  /** The code of the first valid answer. Rejects with `Fault` Unauthorized if the provider refuses. */
  readonly code: Promise<string>
  readonly close: () => Promise<void>
}

const maxCode = 4_096
const maxConnections = 32
/** Milliseconds that a browser has for one request. */
const requestMs = 10_000

/**
 * Listens for the answer of the provider, which the browser brings (RFC 8252, 7.3). Any page or program of this machine
 * can send requests here, so an answer without the secret `state` changes nothing, and a second one is refused.
 */
export async function listenForCallback(
  expected: { readonly state: string; readonly issuer: DiscoveredProvider; readonly clientId: string },
  signal: AbortSignal,
): Promise<Callback> {
  const { promise: code, resolve, reject } = Promise.withResolvers<string>()
  // It may reject before anybody waits for it.
  code.catch(() => {})
  let answered = false
  let host = ''
  const server = createServer(
    { headersTimeout: requestMs, requestTimeout: requestMs, connectionsCheckingInterval: 1_000 },
    (request, response) => {
      // A page of a foreign name that resolves to this machine must not reach the callback.
      if (request.headers.host !== host) return answer(response, 421, 'Unknown host name.')
      if (request.method !== 'GET') return answer(response, 405, 'Only GET is allowed.')
      const parameters = parametersOf(request)
      if (!parameters) return answer(response, 404, 'Not found.')
      if (answered || !sameText(parameters.get('state') ?? '', expected.state)) {
        return answer(response, 400, 'This does not belong to the sign-in in progress.')
      }
      answered = true
      const outcome = outcomeOf(parameters, expected)
      // The page must be complete before this server closes.
      response.once('close', () => (outcome instanceof Fault ? reject(outcome) : resolve(outcome)))
      if (outcome instanceof Fault) answer(response, 200, 'The sign-in failed. The terminal shows the reason.')
      else answer(response, 200, 'Your provider has answered. Return to the terminal.')
    },
  )
  keepBelow(server, maxConnections)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening', { signal })
  const { port } = server.address() as AddressInfo
  host = `127.0.0.1:${port}`
  return {
    redirectUri: `http://${host}/callback`,
    code,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

/**
 * Closes the oldest idle connection when there are more than `max`: connections without a request, which any program of
 * this machine can open, must not keep the browser out.
 */
function keepBelow(server: Server, max: number): void {
  const idle = new Set<Socket>()
  let open = 0
  server.on('connection', (socket) => {
    open += 1
    idle.add(socket)
    socket.once('close', () => {
      open -= 1
      idle.delete(socket)
    })
    const [oldest] = idle
    if (open > max) oldest?.destroy()
  })
  server.on('request', ({ socket }, response) => {
    idle.delete(socket)
    response.once('close', () => {
      if (!socket.destroyed) idle.add(socket)
    })
  })
}

/** The query of a request for the callback. Undefined for other paths, and where a parameter occurs twice. */
function parametersOf({ url = '' }: IncomingMessage): URLSearchParams | undefined {
  const address = URL.parse(url, 'http://127.0.0.1')
  if (address?.pathname !== '/callback') return undefined
  const parameters = address.searchParams
  const names = [...parameters.keys()]
  return new Set(names).size === names.length ? parameters : undefined
}

function outcomeOf(
  parameters: URLSearchParams,
  { issuer, clientId }: { readonly issuer: DiscoveredProvider; readonly clientId: string },
): string | Fault {
  const iss = parameters.get('iss')
  if (iss === null ? issuer.namesItself : iss !== issuer.issuer) {
    const from = iss === null ? 'does not name its issuer' : `is of ${printable(iss)}`
    return new Fault('Unauthorized', `the answer ${from}, and svc expects one of ${printable(issuer.issuer)}`)
  }
  const error = parameters.get('error')
  if (error !== null) return refusal(issuer.issuer, error, parameters.get('error_description') ?? undefined, clientId)
  const code = parameters.get('code') ?? ''
  if (code !== '' && code.length <= maxCode) return code
  return new Fault('Unauthorized', `${printable(issuer.issuer)} returned no code`)
}

function sameText(presented: string, expected: string): boolean {
  const [one, other] = [Buffer.from(presented), Buffer.from(expected)]
  return one.length === other.length && timingSafeEqual(one, other)
}

/** A page that contains nothing of the request. */
function answer(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    'Content-Type': 'text/html; charset=utf-8',
    'Cache-Control': 'no-store',
    'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    Connection: 'close',
  })
  response.end(
    `<!doctype html><html lang="en"><meta charset="utf-8"><title>svc login</title><p>${text} You can close this page.</p></html>`,
  )
}
