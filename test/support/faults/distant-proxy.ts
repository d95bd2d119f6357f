import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** The distance to a server, simulated: each answer arrives late. */
export type DistantProxy = AsyncDisposable & {
  readonly port: number
  /**
   * Round trips since the last call, of all connections together. What is sent before an answer to what was sent before it
   * has arrived belongs to the same round trip.
   */
  readonly trips: () => number
  /** How late answers are from now on, in milliseconds. */
  readonly move: (ms: number) => void
  /** Passes nothing on any more, and keeps every connection. */
  readonly stall: () => void
}

/** A TCP proxy to a port of loopback. */
export async function distantProxy(port: number, distanceMs: number): Promise<DistantProxy> {
  const sockets = new Set<Socket>()
  let [ms, trips, stalled] = [distanceMs, 0, false]
  const listener = createServer((client) => {
    const server = connect(port, '127.0.0.1')
    let hasAnswer = true
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        server.destroy()
      })
    }
    client.on('data', (data) => {
      if (stalled) return
      if (hasAnswer) trips += 1
      hasAnswer = false
      if (server.writable) server.write(data)
    })
    server.on('data', (data) =>
      setTimeout(() => {
        if (stalled) return
        hasAnswer = true
        if (client.writable) client.write(data)
      }, ms),
    )
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  return {
    port: (listener.address() as AddressInfo).port,
    trips: () => {
      const counted = trips
      trips = 0
      return counted
    },
    move: (distance) => {
      ms = distance
    },
    stall: () => {
      stalled = true
    },
    [Symbol.asyncDispose]: async () => {
      listener.close()
      for (const socket of sockets) socket.destroy()
      await once(listener, 'close')
    },
  }
}
