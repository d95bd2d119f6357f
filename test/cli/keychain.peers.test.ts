import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ProcessEnvironment } from '../../src/cli/io/io.ts'
import { askKeychain, keychainEntry } from '../../src/cli/keychain/index.ts'
import { keyringHome, keyringMissing, keyringSession, type Session } from '../support/program/keyring.ts'
import { refusal } from '../support/program/refusal.ts'
import { endsByDeadline } from '../support/suite/deadline.ts'
import { peerSuite } from '../support/suite/peer.ts'

const server = 'https://svc.example.com'

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
      askKeychain({ ...place, does, secret, maxLength: 1_200 }, session.env)
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
    // As after a write that was killed: parts that do not fit the entry are not a secret.
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
