import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export type EndingProxy = {
  readonly port: number
  /** Whether it has ended a connection. */
  readonly ended: () => boolean
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/**
 * A TCP proxy to a port of loopback that ends one connection, as the server would, right after it has passed on so many
 * pieces of what the server sent, over all connections. All other connections work.
 */
export async function endingProxy(port: number, pieces: number): Promise<EndingProxy> {
  const sockets = new Set<Socket>()
  let left = pieces
  let ended = false
  const keep = (socket: Socket): void => {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))
  }
  const listener = createServer({ allowHalfOpen: true }, (client) => {
    keep(client)
    const server = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
    keep(server)
    const end = (): void => {
      ended = true
      client.end()
      server.destroy()
    }
    client.on('data', (data) => server.writable && server.write(data))
    client.on('end', () => server.end())
    client.on('close', () => server.destroy())
    server.on('data', (data) => {
      if (client.writable) client.write(data)
      left -= 1
      if (left === 0) end()
    })
    server.on('end', () => client.end())
    server.on('close', () => client.end())
    if (left === 0 && !ended) end()
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  return {
    port: (listener.address() as AddressInfo).port,
    ended: () => ended,
    [Symbol.asyncDispose]: async () => {
      listener.close()
      for (const socket of sockets) socket.destroy()
      await once(listener, 'close')
    },
  }
}
