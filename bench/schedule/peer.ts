/**
 * The peers that the bench of the schedule checks: HTTP servers and TLS servers on addresses of loopback, in a process
 * of their own. `node peer.ts`, started with an IPC channel. Receives one `PeerSpec`, and then `begin` and `end` in
 * turn.
 */
import { once } from 'node:events'
import { createServer as createHttp } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import { createServer as createTls } from 'node:tls'

export type PeerSpec = {
  /** Addresses on which HTTP answers, from 127.0.1.1. */
  readonly http: number
  /** Addresses on which TLS answers, from 127.0.64.1: one for each monitor, which has no path to tell it from others. */
  readonly tls: number
  readonly certificate: { readonly cert: string; readonly key: string } | undefined
}
export type PeerPorts = { readonly http: number; readonly tls: number }
/** The probes between `begin` and `end`, in the order in which they came. */
export type Probes = {
  /** The number in the path of a request, or of the address of a handshake. */
  readonly http: { readonly ids: Float64Array; readonly at: Float64Array }
  readonly tls: { readonly ids: Float64Array; readonly at: Float64Array }
}

/** The loopback address with this number, from 0: no address ends in 0 or 255. */
export const addressAt = (block: number, number: number): string =>
  `127.0.${block + Math.floor(number / 250)}.${(number % 250) + 1}`
/** The path of the requests of a monitor, as short as it may be, and its number. */
export const pathOf = (number: number): string => number.toString(36)
const numberOf = (path: string): number => Number.parseInt(path, 36)
export const blocks = { http: 1, tls: 64, postgres: 128 } as const

/** Milliseconds since 1970, which move on however the clock of the wall is set. */
const now = (): number => performance.timeOrigin + performance.now()

class Arrivals {
  #ids: number[] = []
  #at: number[] = []

  add(id: number): void {
    this.#ids.push(id)
    this.#at.push(now())
  }

  /** All so far, which it forgets. */
  take(): Probes['http'] {
    const [ids, at] = [Float64Array.from(this.#ids), Float64Array.from(this.#at)]
    this.#ids = []
    this.#at = []
    return { ids, at }
  }
}

const arrivals = { http: new Arrivals(), tls: new Arrivals() }

/** Listens on the addresses of a block, on one port that is free on all of them. */
async function listen(block: number, count: number, make: (number: number) => Server): Promise<number> {
  let port = 0
  for (let number = 0; number < count; number += 1) {
    const server = make(number).listen({ host: addressAt(block, number), port, backlog: 4_096 })
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  }
  return port
}

const httpServer = (): Server =>
  createHttp((request, response) => {
    arrivals.http.add(numberOf(request.url?.slice(1) ?? ''))
    response.end('fine')
  })

const tlsServer = (certificate: PeerSpec['certificate'], number: number): Server =>
  createTls({ ...certificate })
    .on('connection', () => arrivals.tls.add(number))
    // Whoever checks a certificate closes after the handshake, as it likes.
    .on('tlsClientError', () => {})

process.on('message', async (message: PeerSpec | 'begin' | 'end') => {
  if (typeof message === 'object') {
    const { http, tls, certificate } = message
    const ports: PeerPorts = {
      http: await listen(blocks.http, http, httpServer),
      tls: await listen(blocks.tls, tls, (number) => tlsServer(certificate, number)),
    }
    process.send?.(ports)
    return
  }
  const probes: Probes = { http: arrivals.http.take(), tls: arrivals.tls.take() }
  process.send?.(message === 'end' ? probes : 'begin')
})
process.on('disconnect', () => process.exit())
