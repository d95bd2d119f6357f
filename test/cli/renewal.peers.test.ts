import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type StoredSignIn, tokenStore } from '../../src/cli/credentials/token-store.ts'
import { acquire } from '../../src/cli/settings/private-file.ts'
import { openClient } from '../../src/core/client/index.ts'
import { compiledCode } from '../support/program/compiled-code.ts'
import { keyringHome, keyringMissing, keyringSession } from '../support/program/keyring.ts'
import {
  password,
  type ServerOptions,
  type SignInServer,
  signInServer,
  user,
} from '../support/simulated/sign-in-server.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const full = process.env.SVC_PROVE === '1'
const child = new URL('../support/program/renewing-child.ts', import.meta.url).pathname
const locker = new URL('../support/engine/locking-child.ts', import.meta.url).pathname

type CheckContext = {
  readonly server: SignInServer
  readonly signIn: StoredSignIn
  readonly env: Record<string, string>
}

/** A server, and a sign-in there that is stored. */
async function context(options: Partial<ServerOptions> = {}, env: Record<string, string> = {}): Promise<CheckContext> {
  const server = await signInServer({ dialect: 'rotating', ...options })
  onTestFinished(server.close)
  const all = { SVC_HOME: temporaryFolder(), ...env }
  const signIn: StoredSignIn = {
    server: server.url,
    user,
    storage: env['DBUS_SESSION_BUS_ADDRESS'] ? 'keychain' : 'file',
  }
  const client = openClient({ baseUrl: server.url, userAgent: 'svc/test', env: {} })
  const answer = await client.authenticate(
    { provider: 'credentials', UserName: user, Password: password },
    {
      caller: { kind: 'local', account: 'test' },
      correlationId: 'c',
      signal: new AbortController().signal,
      timeoutMs: 10_000,
    },
  )
  await tokenStore(signIn, all).write({ at: answer.BearerToken, rt: answer.RefreshToken })
  return { server, signIn, env: all }
}

/** Many processes at once. `round` releases them together, and gives what each of them says. */
async function crowd({ signIn, env }: CheckContext, size: number) {
  const children = Array.from({ length: size }, () =>
    fork(child, [JSON.stringify(signIn)], {
      env: { PATH: process.env.PATH ?? '', ...compiledCode, ...env },
      stdio: 'inherit',
    }),
  )
  onTestFinished(async () => {
    const running = children.filter((one) => one.exitCode === null && one.signalCode === null)
    const ended = running.map((one) => once(one, 'exit'))
    for (const one of running) one.disconnect()
    await Promise.all(ended)
  })
  await Promise.all(children.map((one) => once(one, 'message')))
  const outputOf = (one: ChildProcess): Promise<string> =>
    new Promise((resolve) => {
      one.once('message', (message) => resolve(JSON.stringify(message)))
      one.once('exit', (_, signal) => resolve(`ended by ${signal}`))
    })
  return {
    children,
    round: async (): Promise<readonly string[]> => {
      const answers = children.map(outputOf)
      for (const one of children) one.send('go')
      return await Promise.all(answers)
    },
  }
}
const done = '{"done":true}'
const renewals = (server: SignInServer): number => server.requests.filter(({ path }) => path === '/access-token').length

describe('parallel processes with an expired token', () => {
  const rounds = full ? 100 : 5
  test(`K4 20 processes that start together renew once, ${rounds} times over`, { timeout: 300_000 }, async () => {
    const here = await context()
    const many = await crowd(here, 20)
    for (let round = 1; round <= rounds; round += 1) {
      here.server.expire()
      expect(await many.round()).toEqual(Array.from({ length: 20 }, () => done))
      expect(here.server.rotations()).toBe(round)
      // Not only one rotation, for which the server's 10 s would suffice: no other process has sent a request.
      expect(renewals(here.server)).toBe(round)
    }
    expect(here.server.alarms()).toBe(0)
    const storedSession = await tokenStore(here.signIn, here.env).read()
    expect(here.server.alive()).toContain(storedSession?.at)
  })

  test('K4 a process that is killed during its renewal delays no other, and causes no reuse', {
    timeout: 60_000,
  }, async () => {
    const killed: string[] = []
    const here = await context({
      onRefresh: async (request: IncomingMessage) => {
        const pid = request.headers['user-agent']?.replace('svc/', '') ?? ''
        if (killed.length >= 3) return
        killed.push(pid)
        process.kill(Number(pid), 'SIGKILL')
      },
    })
    here.server.expire()
    const many = await crowd(here, 8)
    const answers = await many.round()
    expect(killed).toHaveLength(3)
    expect(answers.filter((answer) => answer === 'ended by SIGKILL')).toHaveLength(3)
    expect(answers.filter((answer) => answer === done)).toHaveLength(5)
    // The server had rotated for the first of the killed; the successor was given again.
    expect(here.server.rotations()).toBe(1)
    expect(renewals(here.server)).toBe(4)
    expect(here.server.alarms()).toBe(0)
  })

  test('C5 concurrent calls of one process that are refused are renewed once', async () => {
    const here = await context()
    here.server.expire()
    const { storedCredential } = await import('../../src/cli/credentials/credentials.ts')
    const connection = { baseUrl: here.server.url, userAgent: 'svc/test', env: {} }
    const credential = storedCredential(here.signIn, here.env, {
      always: false,
      service: () => openClient(connection),
      warn: (text) => expect.fail(text),
    })
    const client = openClient({ ...connection, credential })
    const call = {
      caller: { kind: 'local', account: 'test' },
      correlationId: 'c',
      signal: new AbortController().signal,
      timeoutMs: 10_000,
    } as const
    await Promise.all(Array.from({ length: 20 }, () => client.assignRoles({ UserName: 'bob' }, call)))
    expect(here.server.rotations()).toBe(1)
    expect(renewals(here.server)).toBe(1)
  })

  test('C5 a sign-in that can no longer be renewed is exit 4 and names the command to repeat', async () => {
    const here = await context()
    here.server.forget()
    const many = await crowd(here, 3)
    for (const answer of await many.round()) {
      expect(answer).toContain('"done":false')
      expect(answer).toContain(`the sign-in of ${user} at ${here.server.url} has expired or was revoked`)
    }
  })
})

peerSuite(keyringMissing, 'parallel processes at a real keychain', () => {
  test('K4 8 processes that store their token in GNOME Keyring renew once', { timeout: 60_000 }, async () => {
    const { home, remove } = keyringHome()
    const session = await keyringSession(home, 'unlocked')
    onTestFinished(remove)
    onTestFinished(session.close)
    const here = await context({}, session.env)
    const many = await crowd(here, 8)
    for (let round = 1; round <= 2; round += 1) {
      here.server.expire()
      expect(await many.round()).toEqual(Array.from({ length: 8 }, () => done))
      expect(renewals(here.server)).toBe(round)
    }
    const storedSession = JSON.parse(session.lookup(`svc:${here.server.url}`, user) ?? '{}') as { at?: string }
    expect(here.server.alive()).toContain(storedSession.at)
    expect(here.server.alarms()).toBe(0)
  })
})

describe('the lock', () => {
  test('K4 is released by the kernel when its holder is killed', async () => {
    const path = join(temporaryFolder(), 'locks', 'a.lock')
    const holder = fork(locker, [path], { stdio: 'inherit' })
    onTestFinished(() => void holder.kill('SIGKILL'))
    await once(holder, 'message')
    const waiting = acquire(path, new AbortController().signal, 10_000)
    // By the end of this one, the other one has tried, too.
    await expect(acquire(path, new AbortController().signal, 200)).rejects.toThrow('another svc has locked')
    holder.kill('SIGKILL')
    const lock = await waiting
    expect(lock.waited).toBe(true)
    lock.release()
    lock.release()
    expect((await acquire(path, new AbortController().signal)).waited).toBe(false)
  })

  test('K4 a wait ends with its signal', async () => {
    const path = join(temporaryFolder(), 'locks', 'a.lock')
    const lock = await acquire(path, new AbortController().signal)
    const stop = new AbortController()
    const waiting = acquire(path, stop.signal)
    stop.abort(new Error('stop'))
    await expect(waiting).rejects.toThrow('stop')
    lock.release()
  })
})
