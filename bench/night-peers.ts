/**
 * The listeners of a night, in a process of their own, so that a busy svc delays none of their faults. It receives
 * `{name, behaves}` over its channel, and answers once the listener behaves so.
 */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer, type Server, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:tls'
import type { Behaviour, Peer } from './night-plan.ts'

type Files = { readonly good: { cert: string; key: string }; readonly expired: { cert: string; key: string } }

const { peers, certificates } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as {
  readonly peers: readonly Peer[]
  readonly certificates: Files
}
const slowMs = 2_000

/** A listener, and what it does now. */
class Listening {
  readonly #peer: Peer
  readonly #open = new Set<Socket>()
  #behaves: Behaviour = 'well'
  #server: Server | undefined

  constructor(peer: Peer) {
    this.#peer = peer
  }

  async behave(how: Behaviour): Promise<void> {
    this.#behaves = how
    for (const socket of this.#open) socket.destroy()
    if (how === 'refused') {
      const server = this.#server
      this.#server = undefined
      if (!server) return
      const closed = once(server, 'close')
      server.close()
      await closed
      return
    }
    if (this.#peer.kind === 'tls' && this.#server)
      (this.#server as TlsServer).setSecureContext(how === 'expired' ? certificates.expired : certificates.good)
    if (this.#server) return
    const server = this.#make()
    server.on('connection', (socket: Socket) => {
      this.#open.add(socket)
      socket.on('error', () => {}).once('close', () => this.#open.delete(socket))
      if (this.#behaves === 'reset') socket.resetAndDestroy()
    })
    this.#server = server
    await once(server.listen(this.#peer.port, this.#peer.host), 'listening')
  }

  #make(): Server {
    const { kind } = this.#peer
    if (kind === 'tcp') return createServer()
    if (kind === 'http') return createHttpServer(this.#answer)
    return createTlsServer(this.#behaves === 'expired' ? certificates.expired : certificates.good).on(
      'tlsClientError',
      () => {},
    )
  }

  readonly #answer: RequestListener = async (_, response) => {
    const how = this.#behaves
    if (how === 'silent') return
    if (how === 'slow') await pause(slowMs)
    const backlog = how === 'warns' ? 50 : how === 'exceeds' ? 500 : 3
    response.writeHead(how === 'error' ? 500 : 200, { 'Content-Type': 'application/json', Connection: 'close' })
    response.end(JSON.stringify({ state: how === 'wrong' ? 'unwell' : 'well', backlog }))
  }
}

const listening = new Map(peers.map((peer) => [peer.name, new Listening(peer)]))
await Promise.all([...listening.values()].map((one) => one.behave('well')))
process.on('message', ({ name, behaves }: { readonly name: string; readonly behaves: Behaviour }) => {
  void listening.get(name)?.behave(behaves)
})
process.once('disconnect', () => process.exit())
process.send?.('ready')
