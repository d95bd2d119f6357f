import { describe, expect, test } from 'vitest'
import type { SettingsSpec } from '../../../src/core/base/settings/index.ts'
import type { AnyKind, Kind } from '../../../src/core/checks/engine/index.ts'
import http from '../../../src/core/checks/kinds/http/index.ts'
import { type KindName, monitors } from '../../../src/core/checks/kinds/index.ts'
import smtp from '../../../src/core/checks/kinds/smtp/index.ts'
import tls from '../../../src/core/checks/kinds/tls.ts'
import { kindsWithRows, type SilentRow } from '../../support/engine/kind-rows.ts'
import { runKind } from '../../support/engine/run-kind.ts'
import { tcpKinds } from '../../support/engine/tcp-kinds.ts'
import { blackHole, peer, refusedPort } from '../../support/faults/faults.ts'
import { makeCertificates } from '../../support/servers/certs.ts'
import { hungUp } from '../../support/suite/until.ts'

const host = '127.0.0.1'

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
  expect([...Object.keys(tcpKinds), ...others].toSorted()).toEqual(Object.keys(monitors).toSorted())
})

/** `timeoutMs`: long where nothing is waited for, so that a busy machine does not fail the test. */
const runOf = async (name: string, port: number, timeoutMs = 20_000) => {
  const { mode = 'Basic', settings } = tcpKinds[name as KindName] as SilentRow
  const kind = (await monitors[name as KindName].load()).default as AnyKind as Kind<SettingsSpec>
  // A driver that is loaded during the run takes of its time.
  await kind.preload?.()
  const results = await runKind(kind, settings(port, host) as never, mode, { timeoutMs })
  return results.filter(({ status }) => status === 'failed')
}

test.concurrent.each(Object.keys(tcpKinds))(
  'a port of this machine on which nothing listens is a refusal for %s, and no matter of a threshold',
  async (name) => {
    const failed = await runOf(name, await refusedPort())
    expect(failed.map(({ fault }) => fault)).toContain('refused')
    const text = failed.map(({ message }) => message).join('\n')
    expect(text).toContain('host up, nothing listens on that port')
    expect(text).not.toMatch(/\b(?:warn|fail|limit) /)
  },
)

describe('H21 a peer that accepts the connection and sends nothing', () => {
  test.concurrent.each(Object.keys(tcpKinds))('H21 %s says so, with the time, and hangs up', async (name) => {
    await using hole = await peer(blackHole)
    const failed = await runOf(name, hole.port, 2_000)
    expect(failed.map(({ fault }) => fault)).toContain('timeout')
    const text = failed.map(({ message }) => message).join('\n')
    expect(text).toMatch(
      new RegExp(`${host}:${hole.port}(?:/version)? accepted the connection but sent nothing for [\\d.]+ m?s`),
    )
    await hungUp(hole)
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
      await hungUp(server)
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
