import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { SettingsSpec } from '../../../src/core/base/settings/index.ts'
import type { AnyKind, Kind, Result } from '../../../src/core/checks/engine/index.ts'
import { type KindName, monitors } from '../../../src/core/checks/kinds/index.ts'
import type { SilentRow } from '../../support/engine/kind-rows.ts'
import { runKind, secret } from '../../support/engine/run-kind.ts'
import { tcpKinds } from '../../support/engine/tcp-kinds.ts'
import {
  type Proxies,
  proxiesMissing,
  proxyAccount,
  proxyAddress,
  startProxies,
} from '../../support/servers/proxies.ts'
import { freePort } from '../../support/servers/server.ts'
import { peerSuite } from '../../support/suite/peer.ts'

const all = await Promise.all(
  Object.values(monitors).map(async ({ load }) => (await load()).default as AnyKind as Kind<SettingsSpec>),
)
// The registry that kind domain asks has no TLS here, and its name is looked up by tests of its own.
const kinds = all.filter(({ name, settings }) => 'proxy' in settings && name !== 'domain')

const account = { proxyUsername: proxyAccount.username, proxyPassword: secret(proxyAccount.password) }

peerSuite(proxiesMissing, 'kinds behind tinyproxy and microsocks', () => {
  let proxies: Proxies
  let port = 0
  let free = 0
  const clients: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    clients.push(socket.remoteAddress ?? '')
    sockets.add(socket)
    socket.on('error', () => {})
    socket.end()
  })
  beforeAll(async () => {
    proxies = await startProxies()
    await once(server.listen(0, '127.0.0.1'), 'listening')
    port = (server.address() as AddressInfo).port
    free = await freePort()
  })
  beforeEach(() => void clients.splice(0))
  afterAll(async () => {
    server.close()
    for (const socket of sockets) socket.destroy()
    await proxies.remove()
  })

  async function runBehind(kind: Kind<SettingsSpec>, settings: object, at = port): Promise<readonly Result[]> {
    await kind.preload?.()
    const row = tcpKinds[kind.name as KindName] as SilentRow
    // Only the proxy resolves the name.
    const resolve = (host: string) => Promise.resolve([host === 'localhost' ? '192.0.2.1' : host])
    // Its password goes through no proxy without TLS.
    const own = kind.name === 'rabbitmq' ? { url: `https://localhost:${at}` } : {}
    const all = { ...row.settings(at, 'localhost'), ...own, ...settings }
    return await runKind(kind, all as never, row.mode ?? 'Basic', { resolve })
  }

  describe.each(kinds.map((kind) => [kind.name, kind] as const))('H84 %s', (_, kind) => {
    test.each(['http', 'signIn', 'socks'] as const)(
      'connects by the proxy %s, which resolves the name',
      async (name) => {
        await runBehind(kind, { proxy: proxies[name], ...(name === 'http' ? {} : account) })
        expect(clients.length).toBeGreaterThan(0)
        expect(new Set(clients)).toEqual(new Set([proxyAddress]))
      },
    )

    test.each(['http', 'socks'] as const)('fails where the server refuses the proxy %s', async (name) => {
      const results = await runBehind(kind, { proxy: proxies[name], ...(name === 'http' ? {} : account) }, free)
      const [{ fault, message, notChecked } = {}] = results
      expect([fault, notChecked]).toEqual(['refused', undefined])
      expect(message).toMatch(new RegExp(`^localhost:${free} does not accept connections: the proxy 127\\.0\\.0\\.1:`))
    })

    test.each([
      ['closed', {}, /answered 403 .* to CONNECT/],
      ['signIn', {}, /demands a sign-in \(proxyUsername, proxyPassword\)/],
      ['signIn', { ...account, proxyPassword: secret('wrong') }, /refused the sign-in of svc/],
      ['socks', { ...account, proxyPassword: secret('wrong') }, /refused the sign-in of svc/],
      ['socks', {}, /demands a sign-in/],
    ] as const)('is not checked where the proxy refuses: %s %j', async (name, settings, why) => {
      const results = await runBehind(kind, { proxy: proxies[name], ...settings })
      expect(results.map(({ notChecked }) => notChecked)).toEqual(['route'])
      expect(results[0]?.message).toMatch(
        /^not checked: the proxy 127\.0\.0\.1:\d+ .* so that localhost:\d+ was not reached$/,
      )
      expect(results[0]?.message).toMatch(why)
      expect(clients).toEqual([])
    })

    test.each(['http', 'socks5'])('is not checked where no proxy listens, of %s', async (scheme) => {
      const results = await runBehind(kind, { proxy: `${scheme}://127.0.0.1:${free}` })
      expect(results.map(({ notChecked }) => notChecked)).toEqual(['route'])
      expect(results[0]?.message).toContain(`the proxy 127.0.0.1:${free} refused the connection`)
      expect(clients).toEqual([])
    })
  })
})
