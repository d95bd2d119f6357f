import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import type { SettingsSpec } from '../../../src/core/base/settings/index.ts'
import { type Cost, costOf } from '../../../src/core/checks/engine/cost.ts'
import { type AnyKind, includes, type Kind } from '../../../src/core/checks/engine/index.ts'
import { type KindName, monitors } from '../../../src/core/checks/kinds/index.ts'
import { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { type RunKindOptions, runKind, withDefaults } from './run-kind.ts'

type Settings = Readonly<Record<string, unknown>>

/** A peer that counts what comes to it. */
export type CountingPeer = {
  /** A name for each set of settings that is measured. */
  readonly cases: Readonly<Record<string, Settings>>
  /** The cost since the start, once all sessions have ended. Not counted by svc. */
  readonly counted: () => Promise<Cost> | Cost
  /** The checks that may not fail; all without it. */
  readonly checks?: readonly string[]
  readonly options?: RunKindOptions
  readonly stop: () => Promise<unknown>
}
export type CostRow = {
  readonly kind: KindName
  /** The simulated part, if no real server can be had. */
  readonly simulated?: string
  readonly start: () => Promise<CountingPeer>
}

const minus = (a: Cost, b: Cost): Cost => ({
  connections: a.connections - b.connections,
  requests: a.requests - b.requests,
  signIns: a.signIns - b.signIns,
})

type Server = {
  readonly port: number
  readonly remove?: () => Promise<void>
  readonly close?: () => Promise<void>
  readonly [Symbol.asyncDispose]?: () => Promise<void>
}

type Measured = Pick<CountingPeer, 'cases'> & { readonly counted: () => Promise<Partial<Cost>> | Partial<Cost> }

/** The start of a server behind a tap, which counts the connections; the cases lead to the port of the tap. */
export const behindTap =
  <S extends Server>(
    start: () => Promise<S>,
    measure: (server: S, tapped: Tap) => Measured | Promise<Measured>,
  ): CostRow['start'] =>
  async () => {
    const server = await start()
    const tapped = await tap(server.port)
    const { cases, counted } = await measure(server, tapped)
    return {
      cases,
      counted: async () => {
        await tapped.idle()
        return { connections: tapped.sent().length, requests: 0, signIns: 0, ...(await counted()) }
      },
      stop: async () => {
        await tapped.close()
        await (server.remove ?? server.close ?? server[Symbol.asyncDispose])?.()
      },
    }
  }

/** Tests each row: the peer counts in each case and mode what `costOf` states. */
export function describeCosts(rows: readonly CostRow[]): void {
  test.each(
    rows.map((row) => ({ ...row, peer: row.simulated === undefined ? 'the peer' : `a simulated ${row.simulated}` })),
  )(
    '$kind: $peer counts as many connections, requests and sign-ins per run as the reference states',
    async ({ kind: name, start }) => {
      const kind = (await monitors[name].load()).default as AnyKind as Kind<SettingsSpec>
      const peer = await start()
      const adding = kind.cost && 'adds' in kind.cost ? (kind.cost.adds ?? []).map(({ setting }) => setting) : []
      const measured = new Set(Object.values(peer.cases).flatMap(Object.keys))
      try {
        const counted: string[] = []
        const stated: string[] = []
        for (const [label, settings] of Object.entries(peer.cases)) {
          const parsed = withDefaults(kind.settings, settings as never)
          for (const mode of ExecutionMode.values.filter((one) =>
            kind.checks.some(({ depth }) => includes(one, depth)),
          )) {
            const before = await peer.counted()
            const results = await runKind(kind, settings as never, mode, peer.options)
            const failed = results.filter(
              ({ check, status }) => status === 'failed' && (peer.checks?.includes(check) ?? true),
            )
            expect(failed, `${label} ${mode}`).toEqual([])
            counted.push(`${label} ${mode} ${written(minus(await peer.counted(), before))}`)
            stated.push(`${label} ${mode} ${written(costOf(kind, mode, parsed))}`)
          }
        }
        expect(counted).toEqual(stated)
        expect(
          adding.filter((setting) => !measured.has(setting)),
          'settings that no case measures',
        ).toEqual([])
      } finally {
        await peer.stop()
      }
    },
    120_000,
  )
}

const written = (cost: Cost | undefined): string =>
  cost === undefined
    ? 'unknown'
    : `${cost.connections} connections, ${cost.requests} requests, ${cost.signIns} sign-ins`

/** A proxy that keeps what clients send, by connection. */
export type Tap = {
  readonly port: number
  /** The bytes of the client, one entry for each connection so far. */
  readonly sent: () => readonly Buffer[]
  /** The bytes of the server, over all connections. */
  readonly received: () => Buffer
  /** Resolves when all connections have ended on both sides. */
  readonly idle: () => Promise<void>
  readonly close: () => Promise<void>
}

/** Starts a proxy to a port of loopback. */
export async function tap(to: number): Promise<Tap> {
  const sent: Buffer[][] = []
  const received: Buffer[] = []
  const sockets = new Set<Socket>()
  const keep = (socket: Socket): void => {
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))
  }
  const listener = createServer((client) => {
    const own: Buffer[] = []
    sent.push(own)
    const server = connect({ host: '127.0.0.1', port: to })
    for (const socket of [client, server]) keep(socket)
    client.on('data', (data) => own.push(data))
    client.pipe(server)
    server.on('data', (data) => received.push(data))
    server.pipe(client)
    client.on('close', () => server.destroySoon())
    server.on('close', () => client.destroySoon())
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  return {
    port: (listener.address() as AddressInfo).port,
    sent: () => sent.map((all) => Buffer.concat(all)),
    received: () => Buffer.concat(received),
    idle: async () => {
      for (const socket of [...sockets]) if (!socket.closed) await once(socket, 'close')
    },
    close: async () => {
      listener.close()
      for (const socket of sockets) socket.destroy()
      await once(listener, 'close')
    },
  }
}
