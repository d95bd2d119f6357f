import { describe, expect, test } from 'vitest'
import type { SettingsSpec } from '../../../src/core/base/settings/index.ts'
import { readSettings } from '../../../src/core/base/settings/index.ts'
import type { AnyKind } from '../../../src/core/checks/engine/index.ts'
import {
  fingerprint,
  isOfMachine,
  monitorKey,
  observedBy,
  parseKey,
  writeKey,
} from '../../../src/core/checks/engine/index.ts'
import { configurableKinds, hostKind, loadKind } from '../../../src/core/checks/plan/index.ts'

const context = { env: { A: 'x', B: 'x' }, folder: '/' }
const planned = async (kindName: string, raw: Readonly<Record<string, unknown>>, name = kindName) => {
  const kind = await loadKind(kindName as 'http')
  const { values: settings, configured, problems } = readSettings(kind.settings, raw, context)
  expect(problems).toEqual([])
  return { kind, settings, configured, name, type: 'Sql' as const }
}
const postgres = (raw: Readonly<Record<string, unknown>> = {}) =>
  planned('postgres', { url: 'postgres://monitor@db1.internal/orders', ...raw })

describe('the key of a monitor', () => {
  test('H41 is type/kind/name, with an empty name for a monitor without one', async () => {
    const { kind } = await postgres()
    expect(monitorKey({ kind, name: 'postgres orders', type: 'Sql' })).toBe('Sql/postgres/orders')
    expect(monitorKey({ kind, name: 'postgres', type: 'Sql' })).toBe('Sql/postgres/')
    expect(monitorKey({ kind, name: 'host' })).toBe('/postgres/host')
    expect(writeKey({ type: 'Sql', kind: 'postgres', name: 'postgres' })).toBe('Sql/postgres/')
  })

  test('H41 is read back, whatever the name contains', () => {
    for (const name of ['', 'orders', 'a/b/c', 'two words', 'ä/ö 👍']) {
      const parts = { type: 'Sql', kind: 'postgres', name }
      expect(parseKey(writeKey(parts))).toEqual(parts)
    }
    expect(parseKey('Sql/postgres/postgres')).toEqual({ type: 'Sql', kind: 'postgres', name: '' })
    for (const written of ['', 'Sql', 'Sql/postgres', '/postgres/x', 'Sql//x'])
      expect(parseKey(written)).toBeUndefined()
  })
})

describe('what a monitor observes', () => {
  test('H41 stays the same when a threshold, an account, a secret or an expectation changes', async () => {
    const before = observedBy(await postgres())
    for (const raw of [
      { connections: { warn: 10, limit: 20 } },
      { latency: '3s' },
      { url: 'postgres://other@db1.internal/orders' },
      { password: { env: 'A' } },
      { role: 'primary' },
      { tls: 'off' },
      { allowWrites: true },
    ])
      expect(observedBy(await postgres(raw))).toBe(before)
  })

  test('H41 changes with the host, the database, the path, the name looked up and the query', async () => {
    const query = (sql: string) => postgres({ queries: [{ name: 'jobs', sql, expect: '0' }] })
    const file = (path: string) => planned('file-age', { path, age: '1h' })
    const web = (url: string) => planned('http', { url })
    const dns = (query: string, server?: string) => planned('dns', { query, ...(server ? { server } : {}) })
    const all = await Promise.all([
      postgres(),
      postgres({ url: 'postgres://monitor@db2.internal/orders' }),
      postgres({ url: 'postgres://monitor@db1.internal/customers' }),
      query('SELECT 1'),
      query('SELECT 2'),
      file('/var/a'),
      file('/var/b'),
      web('https://a.example.com/livez'),
      web('https://a.example.com/readyz'),
      dns('a.example.com'),
      dns('b.example.com'),
      dns('b.example.com', '10.0.0.53'),
    ])
    expect(new Set(all.map(observedBy)).size).toBe(all.length)
  })

  test('H41 a threshold within a query or a measure does not count', async () => {
    const web = (limit: number) =>
      planned('http', { url: 'https://a.example.com/', measure: [{ name: 'jobs', path: '$.jobs', atMost: { limit } }] })
    expect(observedBy(await web(5))).toBe(observedBy(await web(9)))
  })

  test('H41 every kind that connects to or reads something of its choice marks what that is', async () => {
    const marked = (spec: SettingsSpec): boolean =>
      Object.values(spec).some((setting) => {
        if (setting.type === 'group' || setting.type === 'groups') return marked(setting.fields)
        return setting.type === 'url' || setting.observed === true
      })
    const kinds: readonly AnyKind[] = await configurableKinds()
    expect(kinds.filter(({ settings }) => !marked(settings)).map(({ name }) => name)).toEqual([])
    // Its series name the disk, and the machine is part of where they belong.
    expect(marked((await loadKind(hostKind)).settings)).toBe(false)
    const host = async (raw: Readonly<Record<string, unknown>>) => observedBy(await planned('host', raw))
    expect(await host({ disk: '90%' })).toBe(await host({}))
  })

  test('H41 belongs to one machine where it is the machine itself, a loopback address or a local socket', async () => {
    const own = await Promise.all([
      planned('file-age', { path: '/var/a', age: '1h' }),
      planned('tcp', { host: 'localhost', port: 1 }),
      planned('http', { url: 'http://127.0.0.1/' }),
      postgres({ url: 'postgres:///orders?host=/run/postgresql' }),
    ])
    expect(own.map(isOfMachine)).toEqual(own.map(() => true))
    expect(isOfMachine(await postgres())).toBe(false)
  })
})

describe('the fingerprint', () => {
  test('is equal for the same observation, whatever the type and the name', async () => {
    const one = await postgres({ password: { env: 'A' } })
    const other = await postgres({ password: { env: 'A' } })
    const inOtherType = { ...one, type: 'App', name: 'postgres x' }
    expect(fingerprint(inOtherType)).toBe(fingerprint(other))
  })

  test('differs with any setting, with the origin of a secret, and with a default that is given', async () => {
    const all = await Promise.all([
      postgres(),
      postgres({ latency: '3s' }),
      postgres({ password: { env: 'A' } }),
      postgres({ password: { env: 'B' } }),
      postgres({ allowWrites: false }),
    ])
    expect(new Set(all.map(fingerprint)).size).toBe(all.length)
    expect(all.map(fingerprint).join()).not.toContain('[secret]')
  })
})
