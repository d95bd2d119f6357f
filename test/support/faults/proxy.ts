import { connect, type Socket } from 'node:net'
import { type Peer, peer } from './faults.ts'

/**
 * Passes everything on, each answer late by `ms`; only the first `most` connections get through, and
 * what the first of them asks is late by `firstAskedMs`.
 */
export async function proxy(
  port: number,
  ms: number,
  most = Number.POSITIVE_INFINITY,
  firstAskedMs = 0,
): Promise<Peer> {
  const far: Socket[] = []
  const near = await peer((socket) => {
    if (far.length >= most) return
    const server = connect(port, '127.0.0.1')
    far.push(server)
    server.on('error', () => socket.destroy())
    const delayMs = far.length === 1 ? firstAskedMs : 0
    socket.on('data', (chunk) => setTimeout(() => server.writable && server.write(chunk), delayMs))
    server.on('data', (chunk) => setTimeout(() => socket.writable && socket.write(chunk), ms))
    // A limited proxy is a broken network: the server does not learn that its client is gone.
    if (most === Number.POSITIVE_INFINITY) socket.on('close', () => server.destroy())
  })
  const close = async (): Promise<void> => {
    for (const server of far) server.destroy()
    await near.close()
  }
  return { ...near, close, [Symbol.asyncDispose]: close }
}
