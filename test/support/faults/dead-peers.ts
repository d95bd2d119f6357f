import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** More than the queue of a listener takes. */
const fillers = 16

/** A port at which packets to any address of loopback disappear, because the queue of its listener is full. */
export async function startDeaf(): Promise<number> {
  const child = spawn(process.execPath, [new URL('deaf-child.ts', import.meta.url).pathname], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const port = Number(String(line))
  const sockets = Array.from({ length: fillers }, () => connect(port, '127.0.0.1').on('error', () => {}))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    kill()
    process.off('exit', kill)
  })
  // The kernel takes connections in their order: by then the later ones fill what is left of the queue.
  await Promise.any(sockets.map((socket) => once(socket, 'connect')))
  return port
}

/** A peer that accepts at all addresses of loopback and says nothing. */
export async function startSilent(): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => sockets.add(socket.on('error', () => {}))).listen(0, '0.0.0.0')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** A name server that receives every query and answers none. */
export async function startMuteNameServer(): Promise<number> {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  onTestFinished(() => void socket.close())
  return socket.address().port
}
