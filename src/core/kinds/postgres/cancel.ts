import { connect } from 'node:net'

type Key = { readonly processID: number; readonly secretKey: number }

/**
 * Asks a server to cancel what one of its backends runs (CancelRequest of the frontend/backend
 * protocol): 16 bytes on a connection of their own, never answered; the server closes it when it has
 * passed the wish on. The key is good for this one backend, which ends next, so the request is not
 * worth the round trips of TLS. Never throws, and resolves after `ms` at the latest.
 */
export function cancelRequest(host: string, port: number, key: Key, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const message = Buffer.alloc(16)
    message.writeInt32BE(16, 0)
    message.writeInt32BE(80_877_102, 4)
    message.writeInt32BE(key.processID, 8)
    message.writeInt32BE(key.secretKey, 12)
    const socket = connect({ host, port })
    const timer = setTimeout(() => socket.destroy(), ms)
    socket.on('error', () => {})
    socket.once('connect', () => socket.write(message))
    socket.resume()
    socket.once('close', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
