import type { Server, Socket } from 'node:net'

type Rules = {
  /** Connections that one address may have at once. */
  readonly most: number
  readonly addressOf: (socket: Socket) => string
  readonly exempt: (address: string) => boolean
  /** Told of every connection that was closed for that. */
  readonly refused: () => void
}

/** For 'connection': closes one as it comes when its address has too many, so that no address takes all (S3). */
export function admit({ most, addressOf, exempt, refused }: Rules): (socket: Socket) => void {
  const counts = new Map<string, number>()
  return (socket) => {
    const address = addressOf(socket)
    if (exempt(address)) return
    const count = (counts.get(address) ?? 0) + 1
    counts.set(address, count)
    socket.once('close', () => {
      const left = (counts.get(address) ?? 1) - 1
      if (left > 0) counts.set(address, left)
      else counts.delete(address)
    })
    if (count <= most) return
    refused()
    socket.destroy()
  }
}

/** The open connections of a server, so that a stop can account for every one. */
export type Connections = {
  /** As the system accepted them; over TLS also those whose handshake is under way. */
  readonly transports: ReadonlySet<Socket>
  /** Those that speak HTTP: over TLS the decrypted side, once the handshake is complete. */
  readonly speakers: ReadonlySet<Socket>
  /** How many connections the server has accepted so far. */
  readonly accepted: () => number
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
  return { transports, speakers, accepted: () => accepted }
}
