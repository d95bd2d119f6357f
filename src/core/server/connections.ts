import type { Server, Socket } from 'node:net'

type Rules = {
  /** The maximum number of connections per address. */
  readonly most: number
  readonly addressOf: (socket: Socket) => string
  /** Called for every connection above the limit. */
  readonly refuse: (socket: Socket) => void
}

/** A 'connection' listener that refuses further connections of an address that has too many (S3). */
export function admit({ most, addressOf, refuse }: Rules): (socket: Socket) => void {
  const counts = new Map<string, number>()
  return (socket) => {
    const address = addressOf(socket)
    const count = (counts.get(address) ?? 0) + 1
    counts.set(address, count)
    socket.once('close', () => {
      const left = (counts.get(address) ?? 1) - 1
      if (left > 0) counts.set(address, left)
      else counts.delete(address)
    })
    if (count > most) refuse(socket)
  }
}

/** The open connections of a server, so that a stop can account for each of them. */
export type Connections = {
  /** The sockets as accepted. Over TLS they include those with a handshake in progress. */
  readonly transports: ReadonlySet<Socket>
  /** The sockets that speak HTTP. Over TLS: the decrypted side, after the handshake. */
  readonly speakers: ReadonlySet<Socket>
  /** The number of connections accepted so far. */
  readonly accepted: () => number
  /** Adds a connection that speaks HTTP and that another listener has accepted. */
  readonly adopt: (socket: Socket) => void
}

export function trackConnections(server: Server, secure: boolean): Connections {
  const transports = new Set<Socket>()
  const speakers = secure ? new Set<Socket>() : transports
  let accepted = 0
  const follow = (sockets: Set<Socket>) => (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  }
  server.on('connection', () => {
    accepted += 1
  })
  server.on('connection', follow(transports))
  if (secure) server.on('secureConnection', follow(speakers))
  return {
    transports,
    speakers,
    accepted: () => accepted,
    adopt: (socket) => {
      accepted += 1
      follow(transports)(socket)
      follow(speakers)(socket)
    },
  }
}
