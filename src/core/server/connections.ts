import type { Socket } from 'node:net'

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
