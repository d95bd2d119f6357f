import { hostname, networkInterfaces } from 'node:os'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hostCheck } from '../../src/core/server/hosts.ts'
import { cert, key } from './certificate.ts'
import { ask, openSite, question, type Site, startSite, withSite } from './site.ts'

let site: Site
beforeAll(async () => {
  site = await startSite({ options: { allowedHosts: ['Ops.Example.com', '2001:DB8::0001'] } })
})
afterAll(() => site.server.stop())

const status = async (host: string, path = question): Promise<number> =>
  (await ask(site.port, path, { headers: { host } })).status

describe('S1 the Host header', () => {
  test.each([
    'localhost',
    'LocalHost:8790',
    '127.0.0.1',
    '127.0.0.1:1',
    '127.1.2.3:80',
    '[::1]:8790',
    '[0:0:0:0:0:0:0:1]',
    'app.localhost:8790',
    '[::ffff:7f00:1]',
    'ops.example.com:443',
    '[2001:db8::1]',
  ])('S1 %s is answered', async (host) => {
    expect(await status(host)).toBe(200)
  })

  test.each([
    'evil.example',
    'localhost.',
    'localhost.evil.example',
    'evillocalhost',
    'localhost.localdomain',
    '169.254.1.1',
    '[fe80::1]',
    'xn--lcalhost-n4a',
    '127.0.0.1.evil.example',
    '10.0.0.1',
    '[2001:db8::2]',
    'sub.ops.example.com',
    '0x7f.1',
  ])('S1 %s is a 421', async (host) => {
    expect(await status(host)).toBe(421)
  })

  test.each(['a b', 'user@localhost', 'localhost/x', 'localhost:port', '::1', '[::1', 'localhost:1:2', 'a,b:c'])(
    'S1 %j is not a valid host name',
    async (host) => {
      expect([400, 421]).toContain(await status(host))
    },
  )

  test('S1 the 421 names the remedy and shows the host name safely', async () => {
    const got = await ask(site.port, question, { headers: { host: `${'evil'.repeat(80)}.example` } })
    const message = got.json.ResponseStatus?.Message ?? ''
    expect(got.json.ResponseStatus?.ErrorCode).toBe('MisdirectedRequest')
    expect(message).toMatch(/--allowed-host evil.*serve\.allowedHosts/)
    expect(message.length).toBeLessThan(800)
  })

  test('S1 an unknown path under a foreign host name is a 421 as well, and nothing runs', async () => {
    const before = site.calls.length
    expect(await status('evil.example', '/nothing')).toBe(421)
    expect(await status('evil.example', '/')).toBe(421)
    expect(await status('evil.example', '/metrics')).toBe(421)
    expect(await status('evil.example')).toBe(421)
    expect(site.calls.length).toBe(before)
  })

  test('S1 /livez and /readyz take any Host', async () => {
    expect(await status('10.42.0.7:8790', '/livez')).toBe(200)
    expect(await status('10.42.0.7:8790', '/ReadyZ/')).toBe(200)
  })

  test('S1 the allow-list applies to a POST that stands for another verb', async () => {
    const headers = { host: 'evil.example', 'x-http-method-override': 'GET' }
    expect((await ask(site.port, question, { method: 'POST', headers })).status).toBe(421)
  })
})

describe('S1 listening beyond loopback', () => {
  test('S1 this machine answers to its own names, and to the address that received the connection', async () => {
    await withSite({ host: '0.0.0.0' }, async ({ port }) => {
      const ours = async (host: string) => (await ask(port, question, { headers: { host } })).status
      expect(await ours(hostname())).toBe(200)
      expect(await ours(`${hostname().split('.')[0]}:${port}`)).toBe(200)
      expect(await ours('localhost')).toBe(200)
      expect(await ours('evil.example')).toBe(421)
    })
    await withSite({ host: '0.0.0.0' }, async ({ port, server }) => {
      const [first] = Object.values(networkInterfaces())
        .flatMap((all) => all ?? [])
        .filter(({ internal, family }) => !internal && family === 'IPv4')
      expect(server.peer).toBe(`http://${first?.address ?? '127.0.0.1'}:${port}`)
    })
    const check = hostCheck({ bound: '0.0.0.0', allowedHosts: [], certificate: undefined })
    const own = Object.values(networkInterfaces()).flatMap((all) => all ?? [])
    for (const { address, family } of own.filter(({ address: each }) => !each.includes('%'))) {
      const written = family === 'IPv6' ? `[${address}]:8790` : `${address}:8790`
      expect(() => check(written, address)).not.toThrow()
      expect(() => check(written, `::ffff:${family === 'IPv4' ? address : '10.9.9.9'}`)).not.toThrow(TypeError)
    }
    expect(() => check('192.0.2.1', '192.0.2.2')).toThrow(/--allowed-host 192\.0\.2\.1/)
    expect(() => check('192.0.2.1', '::ffff:192.0.2.1')).not.toThrow()
  })

  test('S1 on loopback, the other names of this machine are foreign', async () => {
    expect(await status(`${hostname()}x`)).toBe(421)
    const check = hostCheck({ bound: '127.0.0.1', allowedHosts: [], certificate: undefined })
    if (hostname().toLowerCase() !== 'localhost') expect(() => check(hostname(), '127.0.0.1')).toThrow()
  })

  test('S1 the names in the certificate belong to this server', async () => {
    const check = hostCheck({ bound: '127.0.0.1', allowedHosts: [], certificate: cert })
    expect(() => check('svc.example.test:8443', '127.0.0.1')).not.toThrow()
    expect(() => check('other.example.test', '127.0.0.1')).toThrow()
    const { server } = await openSite({ tls: { cert, key } })
    expect(server.url).toBe(`https://127.0.0.1:${server.port}`)
  })
})
