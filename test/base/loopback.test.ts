import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isLoopback, isLoopbackHost } from '../../src/core/base/loopback.ts'
import { tlsChoice } from '../../src/core/checks/database/index.ts'
import { maySendPassword } from '../../src/core/checks/kinds/ftp/sign-in.ts'
import http from '../../src/core/checks/kinds/http/index.ts'
import { connectSettings, refuseReadable } from '../../src/core/checks/kinds/ldap/connection.ts'
import redis from '../../src/core/checks/kinds/redis/index.ts'
import { files } from '../support/engine/files.ts'
import { checked, runKind, secret, withDefaults } from '../support/engine/run-kind.ts'

const loopback = [
  '127.0.0.1',
  '127.0.0.0',
  '127.0.0.2',
  '127.255.255.255',
  '::1',
  '0:0:0:0:0:0:0:1',
  '0000:0000:0000:0000:0000:0000:0000:0001',
  '0::1',
  '::0.0.0.1',
  '::ffff:127.0.0.1',
  '::FFFF:127.9.8.7',
  '::ffff:7f00:1',
  '0:0:0:0:0:ffff:7f00:0001',
]
const others = [
  '169.254.1.1',
  '169.254.169.254',
  'fe80::1',
  'febf::1',
  '::ffff:169.254.1.1',
  '::ffff:a9fe:101',
  '0.0.0.0',
  '::',
  '::ffff:0.0.0.0',
  '10.0.0.1',
  '172.16.0.1',
  '192.168.1.1',
  'fd00::1',
  '126.255.255.255',
  '128.0.0.0',
  '::2',
  // IPv4-compatible, NAT64 and 6to4 hold an IPv4 address and are none.
  '::127.0.0.1',
  '64:ff9b::7f00:1',
  '2002:7f00:1::',
  '::ffff:0:127.0.0.1',
  '203.0.113.9',
  '2001:db8::1',
]
/** Texts that are not addresses; some resolvers and URLs would make one of them. */
const texts = [
  '',
  '127',
  '127.1',
  '0x7f.1',
  '2130706433',
  '127.0.0.1.example',
  '127.0.0.999',
  '127.0.0.1:80',
  '[::1',
  '::1]',
]

describe('loopback', () => {
  test('K9 is 127.0.0.0/8 and ::1, in each notation, with and without brackets', () => {
    expect(loopback.filter((address) => !isLoopback(address))).toEqual([])
    expect(loopback.filter((address) => !isLoopback(`[${address}]`))).toEqual([])
  })

  test('is each address of 127.0.0.0/8, also mapped into IPv6, and no other IPv4 address', () => {
    const byte = fc.integer({ min: 0, max: 255 })
    fc.assert(
      fc.property(byte, byte, byte, byte, (a, b, c, d) => {
        const hex = `::ffff:${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
        for (const address of [`${a}.${b}.${c}.${d}`, `::ffff:${a}.${b}.${c}.${d}`, hex]) {
          expect([address, isLoopback(address)]).toEqual([address, a === 127])
        }
        expect(isLoopback(`127.${b}.${c}.${d}`)).toBe(true)
      }),
    )
  })

  test('K9 is not a link-local, an unspecified, a private or a public address', () => {
    expect(others.filter(isLoopback)).toEqual([])
    expect(others.filter((address) => isLoopback(`[${address}]`))).toEqual([])
  })

  test('is not an address with a zone, nor a text that is not an address', () => {
    expect([...loopback.map((address) => `${address}%lo`), 'fe80::1%lo', '[::1%lo]'].filter(isLoopback)).toEqual([])
    expect([...texts, 'localhost'].filter(isLoopback)).toEqual([])
  })

  test('is the name localhost and the names below it, and no other name', () => {
    const names = ['localhost', 'LocalHost', 'app.localhost', 'a.b.localhost', '127.0.0.1', '[::1]']
    expect(names.filter((name) => !isLoopbackHost(name))).toEqual([])
    const strange = ['localhost.example', 'localhost.localdomain', 'evillocalhost', 'ip6-localhost', 'example.com']
    expect([...strange, ...others, ...texts].filter(isLoopbackHost)).toEqual([])
  })
})

describe('the address of the connection decides whether a credential goes in clear text', () => {
  const target = (ip: string) => ({ ip, port: 389, address: ip, signal: new AbortController().signal, step: () => {} })
  const ldap = withDefaults(connectSettings, { url: 'ldap://directory.test' })
  const database = {
    host: 'db',
    port: 1,
    user: 'svc',
    database: '',
    password: undefined,
    tls: { mode: 'auto' },
  } as const

  test.each(others)('K9 to %s nothing is sent, whatever its name', async (ip) => {
    const resolve = () => Promise.resolve([ip])
    const web = { url: 'http://name.localhost/', token: secret('token-12345') }
    const findings = await runKind(http, web, 'Standard', { resolve })
    expect(checked(findings, 'connect').message).toContain('over plain http: use https, or insecureHttp')
    const cache = { url: 'redis://name.localhost/', password: secret('password-12345') }
    const [refusal] = await runKind(redis, cache, 'Basic', { resolve })
    expect(refusal?.message).toContain('without TLS: use rediss://, or insecure: true')
    expect(maySendPassword(ip, false, false)).toBe(false)
    expect(() => refuseReadable({ chain: undefined }, target(ip), ldap)).toThrow(/plain ldap/)
    expect(await tlsChoice(database, ip, files)).toMatchObject({ rejectUnauthorized: true })
  })

  test.each(loopback)('to %s it is sent', async (ip) => {
    expect(maySendPassword(ip, false, false)).toBe(true)
    expect(refuseReadable({ chain: undefined }, target(ip), ldap)).toBeUndefined()
    expect(await tlsChoice(database, ip, files)).toBeUndefined()
  })
})

describe('one function decides', () => {
  /** A comparison, a pattern or a list that takes an address or a name for loopback or link-local. */
  const decides =
    /\^\(?127|startsWith\('127|[!=]== '(?:localhost|::1|127\.|169\.254|fe80)|(?:addSubnet\(|addAddress\(|^ *\[)'(?:127|::1|169\.254|fe80)|endsWith\('\.?localhost|ffff:(?:127|7f)|fe\[89|'localhost'[,\]]/m
  const src = new URL('../../src', import.meta.url).pathname
  // The last one writes addresses as the kernel's tables do.
  const allowed = ['core/base/loopback.ts', 'core/base/net/addresses.ts', 'core/server/peer-account.ts']

  test('K9 no other file of src decides what loopback is', () => {
    const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
    const deciding = files.filter((file) => decides.test(readFileSync(join(src, file), 'utf8')))
    expect(deciding.map((file) => file.replaceAll('\\', '/')).sort()).toEqual(allowed)
  })

  test.each([
    `const own = (host: string): boolean => host === 'localhost'`,
    `const own = (ip: string): boolean => /^(127\\.|::1$|::ffff:127\\.)/.test(ip)`,
    `list.addSubnet('169.254.0.0', 16, 'ipv4')`,
    `const isLinkLocal = isIn([\n  ['169.254.0.0', 16],`,
    `if (host.startsWith('127.')) return 0`,
  ])('a planted one is detected: %s', (line) => {
    expect(line).toMatch(decides)
  })
})
