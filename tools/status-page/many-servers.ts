import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/** Of so many monitors one fails. */
const failingEvery = 1_250

export type ManyServers = {
  readonly yaml: string
  /** Resolves when each monitor has run at least twice. */
  readonly checked: () => Promise<void>
  readonly close: () => Promise<void>
}

/** One web server on many addresses of loopback, and a svc.yaml with this number of monitors, of which a few fail. */
export async function startManyServers(count: number): Promise<ManyServers> {
  const requests = new Map<string, number>()
  const isFailing = (url: string): boolean => Number(url.slice(url.lastIndexOf('-') + 1)) % failingEvery === 7
  const server = createServer(({ url = '' }, response) => {
    requests.set(url, (requests.get(url) ?? 0) + 1)
    response.statusCode = isFailing(url) ? 500 : 200
    response.end('ready')
  }).listen(0, '0.0.0.0')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const lines = Array.from(
    { length: count },
    (_, at) =>
      `      - {kind: http, name: shop-${at}, url: 'http://127.3.${Math.floor(at / 250)}.${1 + (at % 250)}:${port}/shop-${at}'}\n`,
  )
  return {
    yaml: `serve: {every: 1m}\ntypes:\n  App:\n    host: false\n    monitors:\n${lines.join('')}`,
    checked: async () => {
      const end = Date.now() + 300_000
      while ([...requests.values()].filter((n) => n >= 2).length < count && Date.now() < end) await pause(1_000)
      await pause(5_000)
    },
    close: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
