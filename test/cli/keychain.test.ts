import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ProcessEnvironment } from '../../src/cli/flags.ts'
import { askKeychain, keychainEntry } from '../../src/cli/keychain/index.ts'
import { Fault } from '../../src/core/errors.ts'
import { endsByDeadline, lastsAtLeast } from '../support/deadline.ts'
import { keyringHome, keyringMissing, keyringSession, type Session } from '../support/keyring.ts'
import { peerSuite } from '../support/peer.ts'
import { until } from '../support/until.ts'

const server = 'https://svc.example.com'
const folder = mkdtempSync(join(tmpdir(), 'svc-keychain-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const plain = { PATH: process.env.PATH ?? '', HOME: folder }

async function refusal(attempt: Promise<unknown>): Promise<Fault> {
  const error = await attempt.then(
    () => undefined,
    (caught: unknown) => caught,
  )
  if (error instanceof Fault) return error
  return expect.fail(`this should have been a Fault: ${String(error)}`)
}
const entryOf = (env: ProcessEnvironment, user = 'alice') => keychainEntry(server, user, env)
const linux = process.platform === 'linux' ? undefined : 'Secret Service and D-Bus are Linux only'

peerSuite(keyringMissing ?? linux, 'a real GNOME Keyring', () => {
  const { home, remove } = keyringHome()
  let session: Session
  beforeAll(async () => {
    session = await keyringSession(home, 'unlocked')
  })
  afterAll(async () => {
    await session.close()
    remove()
  })

  test('K1 another program finds what svc writes, under server and user, and nothing after removal', async () => {
    const entry = entryOf(session.env)
    const secret = JSON.stringify({ at: 'ä token "quoted"', rt: 'refresh', exp: 1 })
    expect(await entry.read()).toBeUndefined()
    await entry.write(secret)
    expect(session.lookup(`svc:${server}`, 'alice')).toBe(secret)
    expect(await entry.read()).toBe(secret)
    expect(await entryOf(session.env, 'bob').read()).toBeUndefined()
    expect(await keychainEntry('https://other.example.com', 'alice', session.env).read()).toBeUndefined()
    await entry.write('another')
    expect(session.lookup(`svc:${server}`, 'alice')).toBe('another')
    expect(await entry.remove()).toBe(true)
    expect(await entry.remove()).toBe(false)
    expect(session.lookup(`svc:${server}`, 'alice')).toBeUndefined()
  })

  test('K1 a token of 4,000 characters is stored whole', async () => {
    const entry = entryOf(session.env, 'long')
    const secret = JSON.stringify({ at: 'j'.repeat(4_000), rt: 'r'.repeat(4_000) })
    await entry.write(secret)
    expect(await entry.read()).toBe(secret)
    expect(session.lookup(`svc:${server}`, 'long')).toBe(secret)
    await entry.remove()
  })

  test('K1 where an entry has little room, parts are written before the entry itself and removed with it', async () => {
    const place = { service: 'svc:parts', user: 'carol' }
    const ask = (does: 'read' | 'write' | 'remove', secret?: string) =>
      askKeychain({ ...place, does, secret, longest: 1_200 }, session.env)
    const secret = `${'a'.repeat(1_200)}${'b'.repeat(1_200)}${'c'.repeat(1_600)}`
    await ask('write', secret)
    expect(await ask('read')).toEqual({ secret })
    expect(session.lookup('svc:parts', 'carol')).toMatch(/^parts:4:[0-9a-f]{64}$/)
    expect(session.lookup('svc:parts', 'carol#2')).toBe('b'.repeat(1_200))
    const shorter = 'd'.repeat(1_300)
    await ask('write', shorter)
    expect(await ask('read')).toEqual({ secret: shorter })
    expect(session.lookup('svc:parts', 'carol#2')).toBe('d'.repeat(100))
    expect(session.lookup('svc:parts', 'carol#3')).toBeUndefined()
    // As after a write that was killed: parts that do not fit the entry are no secret.
    await askKeychain({ service: 'svc:parts', user: 'carol#2', does: 'write', secret: 'torn' }, session.env)
    expect(await ask('read')).toEqual({ secret: null })
    await ask('remove')
    expect(session.lookup('svc:parts', 'carol#1')).toBeUndefined()
  })

  test('K1 the test of the keychain leaves nothing in it', async () => {
    await entryOf(session.env).prove()
    expect(session.lookup('svc:probe', `probe-${process.pid}`)).toBeUndefined()
  })
})

peerSuite(keyringMissing ?? linux, 'a GNOME Keyring that is locked', () => {
  const { home, remove } = keyringHome()
  let session: Session
  beforeAll(async () => {
    const before = await keyringSession(home, 'unlocked')
    await entryOf(before.env).write('kept before')
    await before.close()
    session = await keyringSession(home, 'locked')
  })
  afterAll(async () => {
    await session.close()
    remove()
  })

  test('K2 is reported as locked, with a remedy, within 3 s', async () => {
    const faults = [
      await endsByDeadline(3_000, refusal(entryOf(session.env).prove()), 4),
      await endsByDeadline(3_000, refusal(entryOf(session.env).read()), 4),
    ]
    for (const fault of faults) {
      expect(fault.fault).toBe('NoKeychain')
      expect(fault.exitCode).toBe(11)
      expect(fault.message).toMatch(/the OS keychain (?:is locked|does not answer)/)
      expect(fault.details.hints?.join('\n')).toMatch(/Unlock it|prompt/)
    }
    expect(faults[0]?.message).toContain('the password was not requested')
  })
})

describe.skipIf(linux !== undefined)('no keychain', () => {
  test('K2 without DBUS_SESSION_BUS_ADDRESS nothing is tried, and the message names three remedies', async () => {
    // The starts themselves are counted: what runs now may be a child of an earlier test on its way out.
    let started = 0
    const count = () => {
      started += 1
    }
    subscribe('child_process', count)
    const fault = await refusal(entryOf(plain).prove())
    unsubscribe('child_process', count)
    expect(started).toBe(0)
    expect(fault.exitCode).toBe(11)
    expect([fault.message, ...(fault.details.hints ?? [])]).toEqual([
      'no keychain for the token: this machine has no OS keychain (the password was not requested)',
      'Linux without a D-Bus session (DBUS_SESSION_BUS_ADDRESS is not set), no Secret Service.',
      'CI, containers   SVC_TOKEN=… svc …                 (nothing on disk)',
      'a 0600 file      svc login --insecure-storage      (anyone with your account can read it)',
      'this shell only  svc login -- bash                 (revoked when it ends)',
    ])
  })

  test('K2 a dead socket is reported as a missing keychain', async () => {
    const env = { ...plain, DBUS_SESSION_BUS_ADDRESS: `unix:path=${folder}/nobody` }
    const fault = await refusal(entryOf(env).prove())
    expect(fault.exitCode).toBe(11)
    expect(fault.message).toContain('this machine has no OS keychain')
  })

  test('K2 a socket that never answers is abandoned after 3 s, and its process ends', async () => {
    const path = join(folder, 'deaf')
    let connected = 0
    let left = 0
    const deaf = createServer((socket) => {
      connected += 1
      socket.on('close', () => {
        left += 1
      })
      socket.on('error', () => {})
      socket.resume()
    }).listen(path)
    await once(deaf, 'listening')
    let ticks = 0
    const timer = setInterval(() => {
      ticks += 1
    }, 50)
    const entry = entryOf({ ...plain, DBUS_SESSION_BUS_ADDRESS: `unix:path=${path}` })
    const fault = await endsByDeadline(
      3_000,
      lastsAtLeast(2_900, () => refusal(entry.read())),
      5,
    )
    clearInterval(timer)
    expect(fault.exitCode).toBe(11)
    expect(fault.message).toBe('the token cannot be read: the OS keychain does not answer')
    // This process was free all the time.
    expect(ticks).toBeGreaterThan(10)
    expect(connected).toBeGreaterThan(0)
    await until(() => left === connected)
    deaf.close()
  })

  test('K2 no fault quotes the secret', async () => {
    const env = { ...plain, DBUS_SESSION_BUS_ADDRESS: `unix:path=${folder}/nobody` }
    const fault = await refusal(entryOf(env).write('a very secret token'))
    expect(JSON.stringify([fault.message, fault.details, fault.stack])).not.toContain('a very secret')
  })
})
