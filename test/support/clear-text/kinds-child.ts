import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createWeb } from 'node:http'
import { type AddressInfo, createServer, isIP, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { resolveHost } from '../../../src/core/base/net/connect.ts'
import { runInChild } from '../../../src/core/checks/child/index.ts'
import { limits, runMonitors } from '../../../src/core/checks/engine/index.ts'
import { loadConfig } from '../../../src/core/config/index.ts'
import { farMs } from '../suite/until.ts'
import {
  type ClearTextCase,
  type ClearTextRow,
  clearTextRows,
  credential,
  mixedPlace,
  type Place,
  places,
} from './places.ts'

/**
 * Runs every row against every place, each with a real listener that records what it receives, and prints what
 * became of it. For the namespace of `network.ts`.
 */
const folder = mkdtempSync(join(tmpdir(), 'svc-clear-text-'))

/** The namespace is its own, and connections leave from higher ports: nothing else has these. */
let nextPort = 20_000

/** Listens at each of the addresses, on the same port. */
async function listeners(addresses: readonly string[], row: ClearTextRow) {
  const bytesByAddress = new Map<string, Buffer[]>()
  const port = nextPort
  nextPort += 1
  const servers: Server[] = []
  const sockets = new Set<Socket>()
  for (const address of addresses) {
    const chunks: Buffer[] = []
    bytesByAddress.set(address, chunks)
    const server = createServer((socket) => {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('data', (chunk) => chunks.push(chunk))
      row.entice(socket, port)
    })
    server.listen({ host: address, port, ipv6Only: true })
    await once(server, 'listening')
    servers.push(server)
  }
  const close = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy()
    await Promise.all(servers.map((server) => new Promise((closed) => server.close(closed))))
  }
  return { port, bytesByAddress, close }
}

async function run(row: ClearTextRow, place: Place, index: number): Promise<ClearTextCase> {
  const { port, bytesByAddress, close } = await listeners(place.listens, row)
  try {
    const path = join(folder, `svc-${index}.yaml`)
    const host = isIP(place.host) === 6 && !row.bare ? `[${place.host}]` : place.host
    writeFileSync(path, JSON.stringify({ types: { App: [row.monitor(host, port, web)] } }), { mode: 0o600 })
    const config = await loadConfig({ env: credential.env, platform: process.platform, home: folder, path })
    const { monitors } = await runMonitors(
      config.types.App?.monitors ?? [],
      {
        now: () => performance.now(),
        date: () => new Date(),
        resolve: resolveHost,
        inChild: runInChild,
        measureState: () => () => ({}),
        limits: limits(),
      },
      { mode: 'Advanced', signal: new AbortController().signal, timeoutMs: farMs },
    )
    return {
      row: row.name,
      place: place.name,
      receivers: [...bytesByAddress].flatMap(([address, chunks]) =>
        credential.isIn(Buffer.concat(chunks)) ? [address] : [],
      ),
      failures: monitors.flatMap(({ results }) =>
        results.filter(({ status }) => status === 'failed').map(({ check, message }) => `${check}: ${message}`),
      ),
    }
  } finally {
    await close()
  }
}

const pages = createWeb((_, response) => response.end('{}')).listen(0, '127.0.0.1')
await once(pages, 'listening')
const web = `http://127.0.0.1:${(pages.address() as AddressInfo).port}/`

try {
  const cases: ClearTextCase[] = []
  for (const row of clearTextRows) {
    cases.push(...(await Promise.all([...places, mixedPlace].map((place, index) => run(row, place, index)))))
  }
  process.stdout.write(JSON.stringify(cases))
} finally {
  pages.close()
  rmSync(folder, { recursive: true, force: true })
}
