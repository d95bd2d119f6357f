import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'

export type HttpPeer = {
  readonly port: number
  /** `http://127.0.0.1:port`, or https. */
  readonly origin: string
  /** Every request so far, `GET /path?query`, in the order of their coming. */
  readonly requestLines: () => readonly string[]
  readonly requests: () => readonly IncomingMessage[]
  readonly open: () => number
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/** A real HTTP server on loopback that records its requests. */
export async function httpPeer(
  answer: RequestListener,
  tls?: { readonly key: string; readonly cert: string },
): Promise<HttpPeer> {
  const requests: IncomingMessage[] = []
  const sockets = new Set<Socket>()
  const listener: RequestListener = (request, response) => {
    requests.push(request)
    answer(request, response)
  }
  const server = tls ? createSecureServer(tls, listener) : createServer(listener)
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    origin: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    requestLines: () => requests.map(({ method, url }) => `${method} ${url}`),
    requests: () => requests,
    open: () => sockets.size,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Answers each path with its text; a function is called, anything else is 404. */
export const pages =
  (byPath: () => Readonly<Record<string, unknown>>, type = 'application/json'): RequestListener =>
  (request, response) => {
    const entry = Object.entries(byPath()).find(([path]) => path === request.url)
    if (!entry) {
      response.writeHead(404).end()
      return
    }
    const [, body] = entry
    response.writeHead(200, { 'Content-Type': type }).end(typeof body === 'string' ? body : JSON.stringify(body))
  }
