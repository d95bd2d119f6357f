import { readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Values } from '../../../src/core/base/settings/index.ts'
import { probeFile } from '../../../src/core/checks/folders/index.ts'
import sftp from '../../../src/core/checks/kinds/sftp/index.ts'
import type { ExecutionMode } from '../../../src/core/protocol/index.ts'
import { expectResult } from '../../support/engine/finds.ts'
import {
  checked,
  checksOf,
  ofRunner,
  problemsOf,
  type RunKindOptions,
  runKind,
  secret,
} from '../../support/engine/run-kind.ts'
import { proxy } from '../../support/faults/proxy.ts'
import { sessionsLeft } from '../../support/servers/own-daemon.ts'
import { type Sshd, sshdMissing, startSshd } from '../../support/servers/sshd.ts'
import { peerSuite } from '../../support/suite/peer.ts'

type SftpSettings = Values<typeof sftp.settings>
type Overrides = Partial<SftpSettings>
const host = '127.0.0.1'
const strange = `SHA256:${'A'.repeat(43)}`

peerSuite(sshdMissing, 'sftp against OpenSSH', () => {
  let server: Sshd
  beforeAll(async () => {
    server = await startSshd()
  })
  afterAll(() => server.remove())
  const run = (overrides: Overrides = {}, mode: ExecutionMode = 'Standard', options: RunKindOptions = {}) =>
    runKind(
      sftp,
      {
        host,
        port: server.port,
        username: server.user,
        privateKey: secret(server.privateKey),
        hostKey: [server.hostKey],
        ...overrides,
      },
      mode,
      options,
    )
  const _signedIn = (): number => server.log().match(/Accepted publickey/g)?.length ?? 0

  test('each mode runs its checks, and leaves no session and no file', async () => {
    const writes: Overrides = {
      folder: server.files,
      files: { limit: 5 },
      allowWrites: true,
      probeFolder: server.files,
      throughput: { limit: 1 },
    }
    const basic = await run(writes, 'Basic')
    expect(problemsOf(basic)).toEqual([])
    expect(checksOf(basic)).toEqual(['banner'])
    const standard = await run(writes, 'Standard')
    expect(problemsOf(standard)).toEqual([])
    expect(checksOf(standard)).toEqual(['banner', 'host key', 'sign-in', 'listing'])
    const advanced = await run(writes, 'Advanced')
    expect(problemsOf(advanced)).toEqual([])
    // It has no client certificate of TLS.
    const others = ofRunner.filter((name) => name !== 'client certificate')
    expect([...checksOf(advanced), ...others]).toEqual(sftp.checks.map((check) => check.name))
    expect(advanced.every((result) => result.address === server.address)).toBe(true)
    expect(readdirSync(server.files)).toEqual([])
    expect(await sessionsLeft(server)).toBe(0)
  })
  test('it reports what it observes', async () => {
    const results = await run()
    const textOf = (check: string): string => checked(results, check).message
    expect(textOf('banner')).toMatch(
      /^127\.0\.0\.1:\d+ sent "SSH-2\.0-OpenSSH_.*" in [\d.]+ m?s \(warn 1 s, fail 3 s\)$/,
    )
    expect(textOf('host key')).toBe(`${server.address} presented ssh-ed25519 ${server.hostKey}`)
    expect(textOf('sign-in')).toMatch(new RegExp(`^signed in to .* as "${server.user}" in [\\d.]+ m?s`))
    expect(textOf('listing')).toMatch(/^(?:more than )?\d+ entr(?:y|ies) of "\/.*" listed in /)
  })
  test('an account that may do nothing but SFTP passes all checks', async () => {
    const limited = await startSshd(['ForceCommand internal-sftp', 'PermitTTY no', 'DisableForwarding yes'])
    onTestFinished(() => limited.remove())

    const credentials = { username: limited.user, privateKey: secret(limited.privateKey), hostKey: [limited.hostKey] }
    const folders = { folder: limited.files, allowWrites: true, probeFolder: limited.files }
    const results = await runKind(sftp, { host, port: limited.port, ...credentials, ...folders }, 'Advanced')
    expect(problemsOf(results)).toEqual([])
  })
  test('without an account, the server must prove that it owns the expected key, and nobody signs in', async () => {
    const before = server.log().length
    const results = await runKind(sftp, { host, port: server.port, hostKey: [server.hostKey] }, 'Standard')
    expect(problemsOf(results)).toEqual([])
    expect(checksOf(results)).toEqual(['banner', 'host key'])
    const other = await runKind(sftp, { host, port: server.port, hostKey: [strange] }, 'Standard')
    expect(checked(other, 'host key')).toMatchObject({ status: 'failed', fault: 'tls' })
    expect(await sessionsLeft(server)).toBe(0)
    expect(server.log().slice(before)).not.toContain('Accepted')
  })
  test('the software of the server and the fingerprint of its key are details', async () => {
    const results = await run()
    expect(checked(results, 'banner').facts).toEqual({ version: expect.stringMatching(/^OpenSSH_\d/) })
    expect(checked(results, 'host key').facts).toEqual({ hostKey: server.hostKey })
  })
  test('4 MiB come back the same, in many concurrent requests', async () => {
    const overrides: Overrides = { allowWrites: true, probeFolder: server.files, probeSize: 4 * 1024 * 1024 }
    const results = await run(overrides, 'Advanced')
    expect(problemsOf(results)).toEqual([])
    expect(checked(results, 'round trip').message).toContain('4 MiB written in')
    expect(readdirSync(server.files)).toEqual([])
  })
  test('a key under a passphrase, and one without its final newline, sign in', async () => {
    const locked = { privateKey: secret(server.lockedKey), passphrase: secret('correct horse') }
    expect(problemsOf(await run(locked))).toEqual([])
    expect(problemsOf(await run({ privateKey: secret(server.privateKey.trimEnd()) }))).toEqual([])
  })
  test.each([
    ['a wrong passphrase', 'locked', 'battery staple', 'its passphrase is missing or wrong'],
    ['no passphrase', 'locked', undefined, 'its passphrase is missing or wrong'],
    ['no key at all', 'battery staple', undefined, 'it is not a private key'],
  ])('%s is reported before any connection, and not shown', async (_, which, passphrase, message) => {
    const overrides: Overrides = {
      privateKey: secret(which === 'locked' ? server.lockedKey : which),
      ...(passphrase === undefined ? {} : { passphrase: secret(passphrase) }),
    }
    const results = await run(overrides)
    expect(results).toHaveLength(1)
    expect(results[0]).toMatchObject({ check: 'sign-in', status: 'failed', fault: 'internal' })
    expect(results[0]?.message).toContain(message)
    expect(JSON.stringify(results)).not.toContain('battery')
  })
  test('a password where only keys are accepted is reported as such', async () => {
    const results = await run({ privateKey: undefined, password: secret('correct horse') })
    expect(checked(results, 'sign-in')).toMatchObject({ status: 'failed', fault: 'auth' })
    expect(checked(results, 'sign-in').message).toContain(': it offers none of the configured methods')
  })
  test('one of several hostKeys is enough, with or without the padding of base64', async () => {
    expect(problemsOf(await run({ hostKey: [strange, `${server.hostKey}=`] }))).toEqual([])
  })
  test('without an account the host key is reported, and ok', async () => {
    const results = await run({ username: undefined, privateKey: undefined, hostKey: undefined })
    expect(problemsOf(results)).toEqual([])
    expect(checksOf(results)).toEqual(['banner', 'host key'])
    const anonymous = await run({ username: undefined, privateKey: undefined })
    expect(problemsOf(anonymous)).toEqual([])
  })
  test('the date of the oldest file in the drop folder is found, without folders and other extensions', async () => {
    const now = Date.now()
    const write = (name: string, minutes: number): void => {
      writeFileSync(join(server.files, name), 'x')
      utimesSync(join(server.files, name), new Date(), new Date(now - minutes * 60_000))
    }
    write('a.xml', 20)
    write('b.xml', 90)
    write('old.txt', 600)
    const results = await run({ folder: server.files, ending: '.xml', files: { limit: 1 } }, 'Advanced')
    const oldest = checked(results, 'oldest file')
    expect(oldest).toMatchObject({ status: 'failed', fault: 'threshold', measurement: { limit: 3_600_000 } })
    expect(oldest.message).toMatch(/"b\.xml", has waited 1\.5 h \(warn 15 min, fail 1 h\)$/)
    expect(checked(results, 'backlog')).toMatchObject({ status: 'failed', measurement: { value: 2 } })
    const { rmSync } = await import('node:fs')
    for (const name of ['a.xml', 'b.xml', 'old.txt']) rmSync(join(server.files, name))
  })
  test('only leftovers of svc are swept', async () => {
    const old = probeFile(1, new Date(Date.now() - 2 * 3_600_000))
    const young = probeFile(1, new Date())
    const others = [young.name, 'report.xml']
    for (const name of [old.name, old.renamed, ...others]) writeFileSync(join(server.files, name), 'x')
    const results = await run({ allowWrites: true, probeFolder: server.files }, 'Advanced')
    expect(checked(results, 'sweep').message).toBe('2 of 2 leftovers of earlier round trips deleted')
    expect(readdirSync(server.files).sort()).toEqual([...others].sort())
    const { rmSync } = await import('node:fs')
    for (const name of others) rmSync(join(server.files, name))
  })
  test('a server without SFTP is distinguished from a refused sign-in', async () => {
    const without = await startSshd(['ForceCommand false'])
    onTestFinished(() => without.remove())

    const results = await run({
      port: without.port,
      hostKey: [without.hostKey],
      privateKey: secret(without.privateKey),
    })
    expect(checked(results, 'sign-in').status).toBe('ok')
    expect(checked(results, 'listing')).toMatchObject({ status: 'failed' })
    expect(checked(results, 'listing').fault).not.toBe('auth')
  })
  test('slow: answers that are each 150 ms late exceed the threshold, with the value', async () => {
    await using slow = await proxy(server.port, 150)
    const results = await run({ port: slow.port, latency: { warn: 50, limit: 120 } })
    for (const check of ['banner', 'sign-in', 'listing']) {
      expectResult(checked(results, check), 'failed (threshold)', { measurement: { limit: 120 } })
      expect(checked(results, check).measurement?.value).toBeGreaterThan(140)
    }
  })
})
