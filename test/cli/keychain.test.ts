import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { ProcessEnvironment } from '../../src/cli/io/io.ts'
import { keychainEntry } from '../../src/cli/keychain/index.ts'
import { refusal } from '../support/program/refusal.ts'
import { endsByDeadline, lastsAtLeast } from '../support/suite/deadline.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

const server = 'https://svc.example.com'
const folder = temporaryFolder()
const plain = { PATH: process.env.PATH ?? '', HOME: folder }

const entryOf = (env: ProcessEnvironment, user = 'alice') => keychainEntry(server, user, env)
const linux = process.platform === 'linux' ? undefined : 'Secret Service and D-Bus are Linux only'

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
