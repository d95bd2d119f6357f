import { describe, expect, test } from 'vitest'
import { readSettings, type SettingsSpec } from '../../../src/core/base/settings/index.ts'
import type { AnyKind, Kind, Result } from '../../../src/core/checks/engine/index.ts'
import http from '../../../src/core/checks/kinds/http/index.ts'
import httpSteps from '../../../src/core/checks/kinds/http-steps/index.ts'
import { type KindName, monitors } from '../../../src/core/checks/kinds/index.ts'
import smtp from '../../../src/core/checks/kinds/smtp/index.ts'
import tls from '../../../src/core/checks/kinds/tls.ts'
import { kindsWithRows, type SilentRow } from '../../support/engine/kind-rows.ts'
import { runKind, secret } from '../../support/engine/run-kind.ts'
import { blackHole, peer, refusedPort } from '../../support/faults/faults.ts'
import { makeCertificates } from '../../support/servers/certs.ts'
import { hungUp } from '../../support/suite/until.ts'

const host = '127.0.0.1'
const account = { username: 'monitor', password: secret('wrong-horse-7') }

/** How each kind that speaks over TCP gets to a server. */
const silent: Partial<Record<KindName, SilentRow>> = {
  deployment: { mode: 'Advanced', settings: (port) => ({ url: `http://${host}:${port}/version`, expected: '1' }) },
  ftp: { settings: (port) => ({ host, port, tls: 'off' }) },
  grpc: { mode: 'Standard', settings: (port) => ({ host, port }) },
  http: { settings: (port) => ({ url: `http://${host}:${port}/` }) },
  'http-steps': {
    mode: 'Advanced',
    settings: (port) => {
      const raw = { url: `http://${host}:${port}/`, steps: [{ name: 'first', path: '/' }] }
      return readSettings(httpSteps.settings, raw, { env: {}, folder: '/' }).values
    },
  },
  ldap: { settings: (port) => ({ url: `ldap://${host}:${port}` }) },
  mongo: { settings: (port) => ({ url: `mongodb://${host}:${port}` }) },
  mysql: { settings: (port) => ({ url: `mysql://monitor@${host}:${port}/`, password: account.password }) },
  oidc: { settings: (port) => ({ issuer: `http://${host}:${port}` }) },
  pgbouncer: { settings: (port) => ({ url: `postgres://monitor@${host}:${port}/`, password: account.password }) },
  postgres: { settings: (port) => ({ url: `postgres://monitor@${host}:${port}/`, password: account.password }) },
  rabbitmq: { settings: (port) => ({ url: `http://${host}:${port}`, ...account }) },
  redis: { settings: (port) => ({ url: `redis://${host}:${port}` }) },
  sftp: { settings: (port) => ({ host, port }) },
  smtp: { settings: (port) => ({ host, port }) },
  svc: { settings: (port) => ({ url: `http://${host}:${port}`, type: 'App' }) },
  sqlserver: { settings: (port) => ({ url: `sqlserver://monitor@${host}:${port}`, password: account.password }) },
  tls: { settings: (port) => ({ host, port }) },
  ...Object.fromEntries(kindsWithRows.flatMap((row) => (row.silent === 'no TCP' ? [] : [[row.kind, row.silent]]))),
}

/** These speak over no TCP connection to a server of their own. */
const others: readonly KindName[] = [
  'configuration',
  // Its queries use UDP.
  'dns',
  'exec',
  'file-age',
  'heartbeat',
  'host',
  'listening',
  'mail-queue',
  'ping',
  'process',
  'self',
  'sign-in',
  'service',
  'sqlite',
  ...kindsWithRows.filter((row) => row.silent === 'no TCP').map(({ kind }) => kind),
]

test('H21 every kind is in the table of silent peers, or speaks over no TCP connection', () => {
  expect([...Object.keys(silent), ...others].toSorted()).toEqual(Object.keys(monitors).toSorted())
})

/** What fails in a run of a kind of the table against a port. */
async function failuresAt(name: string, port: number): Promise<readonly Result[]> {
  const { mode = 'Basic', settings } = silent[name as KindName] ?? { settings: () => ({}) }
  const kind = (await monitors[name as KindName].load()).default as AnyKind as Kind<SettingsSpec>
  // A driver that is loaded during the run takes of its time.
  await kind.preload?.()
  const results = await runKind(kind, settings(port) as never, mode, { timeoutMs: 2_000 })
  return results.filter(({ status }) => status === 'failed')
}

test.concurrent.each(Object.keys(silent))('%s calls a port without a listener refused', async (name) => {
  const [first] = await failuresAt(name, await refusedPort())
  expect(first).toMatchObject({ fault: 'refused', message: expect.stringContaining('refused the connection') })
})

describe('H21 a peer that accepts the connection and sends nothing', () => {
  test.concurrent.each(Object.keys(silent))('H21 %s says so, with the time, and leaves no socket', async (name) => {
    await using hole = await peer(blackHole)
    const failed = await failuresAt(name, hole.port)
    await hungUp(hole)
    expect(failed.map(({ fault }) => fault)).toContain('timeout')
    const text = failed.map(({ message }) => message).join('\n')
    expect(text).toMatch(
      new RegExp(`${host}:${hole.port}(?:/version)? accepted the connection but sent nothing for [\\d.]+ m?s`),
    )
  })

  test('H21 a peer that greets and then says nothing did not send nothing', async () => {
    await using server = await peer((socket) => void socket.write('220 mail ESMTP\r\n'))
    const results = await runKind(smtp, { host, port: server.port }, 'Standard', { timeoutMs: 1_000 })
    const text = results.map(({ message }) => message).join('\n')
    expect(results.some(({ fault }) => fault === 'timeout')).toBe(true)
    expect(text).not.toContain('sent nothing')
  })

  test('H21 a server that finishes the TLS handshake and then says nothing did not send nothing', async () => {
    const certificates = makeCertificates()
    try {
      await using server = await peer(blackHole, { tls: certificates.good })
      const settings = { url: `https://${host}:${server.port}/`, caFile: certificates.caFile }
      const results = await runKind(http, settings, 'Basic', { timeoutMs: 1_500 })
      expect(results.some(({ fault }) => fault === 'timeout')).toBe(true)
      expect(results.map(({ message }) => message).join('\n')).not.toContain('sent nothing')
    } finally {
      certificates.remove()
    }
  })

  test('H21 a peer that resets the connection is not a silent one', async () => {
    await using server = await peer((socket) => void socket.resetAndDestroy())
    const results = await runKind(tls, { host, port: server.port }, 'Basic', { timeoutMs: 1_000 })
    expect(results.map(({ message }) => message).join('\n')).not.toContain('sent nothing')
    expect(results.some(({ status }) => status === 'failed')).toBe(true)
  })
})
