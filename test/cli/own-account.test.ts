import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../../src/core/config/index.ts'
import { onTerminal } from '../../tools/pages/terminal.ts'
import { testCore, testServer } from '../support/engine/core.ts'
import type { Home, Ran } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { adminOver, type TestAdmin } from '../support/store/admin.ts'
import { suiteWith } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

const by = { who: 'local:tester', correlationId: 'own-account' }
const password = 'violet-harbour-42'
const next = 'copper-lantern-77'
const all = ({ stdout, stderr }: Ran): string => `${stdout}${stderr}`

type Own = {
  readonly url: string
  readonly home: Home
  readonly admin: TestAdmin
  readonly store: string
  readonly stop: () => Promise<void>
}

/** A real server with Bob, who has signed in from a home of his own. */
async function context(): Promise<Own> {
  const folder = temporaryFolder()
  const store = join(folder, 'store', 'svc.db')
  const { service, runtime } = await testCore({
    config: await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder }),
    store,
  })
  const admin = adminOver(service)
  const server = await testServer({ service, runtime })
  const home = temporaryHome()
  const stop = async (): Promise<void> => {
    await server.stop()
    await runtime.close()
  }
  onTestFinished(stop)
  await admin.users.add({ userName: 'bob', password }, by)
  await signIn(home, server.url)
  return { url: server.url, home, admin, store, stop }
}

async function signIn(home: Home, url: string, secret = password): Promise<void> {
  const args = ['login', '--server', url, '-u', 'bob', '--password-stdin', '--insecure-storage']
  expect(await home.run(args, { stdin: secret })).toMatchObject({ code: 0 })
}

async function elsewhere(url: string): Promise<Home> {
  const home = temporaryHome()
  await signIn(home, url)
  return home
}

const passwd = (home: Home, current: string, newPassword: string) =>
  home.run(['passwd', '--password-stdin'], { stdin: `${current}\n${newPassword}\n` })
const signedIn = async (home: Home): Promise<number | null> => (await home.run(['whoami', '--verify'])).code

describe('svc passwd', () => {
  test('P9 changes the password, stays signed in here, and ends the sign-in elsewhere', async () => {
    const { url, home } = await context()
    const other = await elsewhere(url)
    const ran = await passwd(home, password, next)
    expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining(`The password of bob at ${url} is changed`) })
    expect(all(ran)).not.toMatch(new RegExp(`${password}|${next}`))
    expect([await signedIn(home), await signedIn(other)]).toEqual([0, 4])
    expect(
      (
        await home.run(['login', '--server', url, '-u', 'bob', '--password-stdin', '--insecure-storage'], {
          stdin: next,
        })
      ).code,
    ).toBe(0)
  })

  test.each([
    ['a wrong current password', 'wrong', next, 4, 'the current password is wrong; nothing was changed'],
    [
      'a common new password',
      password,
      'Admin@123',
      9,
      'the new password is a common password, which attackers try first',
    ],
    ['the same password again', password, password, 9, 'the new password must differ from the current password'],
  ])('P9 %s changes nothing', async (_, current, newPassword, code, message) => {
    const { home, admin } = await context()
    expect(await passwd(home, current, newPassword)).toMatchObject({ code, stderr: expect.stringContaining(message) })
    expect(await signedIn(home)).toBe(0)
    const events = (await admin.audit.list({ limit: 10 })).map(({ event }) => event)
    expect(events).not.toContain('password.changed')
  })

  test('P7 standard input must have two lines', async () => {
    const { home } = await context()
    for (const stdin of [password, `${password}\n\n`, `${password}\n${next}\nmore\n`]) {
      const ran = await home.run(['passwd', '--password-stdin'], { stdin })
      expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining('must contain 2 lines') })
    }
    const ran = await home.run(['passwd'])
    expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining('--password-stdin is missing') })
  })

  test('P8 on this machine it says which command to use', async () => {
    const { home } = await context()
    const ran = await home.run(['passwd', '--local'])
    expect(ran).toMatchObject({ code: 2, stderr: expect.stringMatching(/nobody is signed in.*svc users passwd/s) })
  })

  test('P9 without a sign-in, after its end and without a server, no password is read', async () => {
    const { url, home, admin, stop } = await context()
    const nobody = await svcHomeOf().svc(['passwd', '--server', url, '--password-stdin'], { stdin: 'x\ny\n' })
    expect(nobody).toMatchObject({ code: 4, stderr: expect.stringContaining('nobody is signed in') })
    await admin.users.passwd('bob', next, by)
    const ended = await passwd(home, next, 'pewter-meadow-31')
    expect(ended).toMatchObject({ code: 4, stderr: expect.stringContaining('has expired or was revoked') })
    await stop()
    expect((await passwd(home, next, 'pewter-meadow-31')).code).toBe(6)
  })

  test('K5 it is refused while SVC_TOKEN is set', async () => {
    const { home } = await context()
    const ran = await home.run(['passwd'], { env: { SVC_TOKEN: 'svc_at_x' } })
    expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining('SVC_TOKEN is set') })
  })
})

function svcHomeOf(): Home {
  const home = temporaryHome()
  return home
}

suiteWith(
  spawnSync('script', ['--version']).status === 0 ? undefined : 'the program script is not installed',
  'svc passwd on a terminal',
  () => {
    test('P7 asks for the current password, and again for a new one that was not repeated, without echo', async () => {
      const { home } = await context()
      const steps = [
        ['Current password', password],
        ['New password', next],
        ['Confirm password', 'another'],
        ['New password', next],
        ['Confirm password', next],
      ]
      let fresh = ''
      const { output, status } = await onTerminal(`"$NODE" "$SVC" passwd`, {
        cwd: home.folder,
        env: { ...home.env, NODE: process.execPath, SVC: home.program },
        timeoutMs: 25_000,
        answer: (text) => {
          fresh += text
          const [question = '', typed = ''] = steps[0] ?? []
          // A prompt is drawn again at every key, and once more with a tick when it is answered.
          if (question === '' || !new RegExp(`\\? ${question}`).test(fresh)) return undefined
          steps.shift()
          fresh = ''
          return `${typed}\r`
        },
      })
      expect(output).toContain('The passwords do not match. Try again.')
      expect(output).toContain('is changed; your other sessions and tokens have ended')
      expect(output).not.toMatch(new RegExp(`${password}|${next}|another`))
      expect(status).toBe(0)
      expect(await signedIn(home)).toBe(0)
    })

    test('K7 ctrl-C at the prompt: exit 130, nothing changed', async () => {
      const { home, admin } = await context()
      const ran = await home.terminal(['passwd'], (output) =>
        output.includes('Current password') ? '\x03' : undefined,
      )
      expect(ran.code).toBe(130)
      expect((await admin.audit.list({ limit: 10 })).map(({ event }) => event)).toEqual(['signin.ok', 'user.added'])
      expect(await signedIn(home)).toBe(0)
    })
  },
)

describe('svc sessions', () => {
  type Listed = { readonly sessions: readonly { readonly id: string; readonly current: boolean }[] }
  const listed = async (home: Home, ...more: string[]): Promise<Listed['sessions']> =>
    (JSON.parse((await home.run(['sessions', 'list', '--json', ...more])).stdout) as Listed).sessions

  test('T8 lists the sessions and ends one by the beginning of its id', async () => {
    const { url, home } = await context()
    const other = await elsewhere(url)
    const sessions = await listed(home)
    expect(sessions.map(({ current }) => current).toSorted()).toEqual([false, true])
    const id = sessions.find(({ current }) => !current)?.id.slice(0, 8) ?? ''
    expect(await home.run(['sessions', 'end', id])).toMatchObject({ code: 0, stdout: '1 session has ended\n' })
    expect([await signedIn(home), await signedIn(other)]).toEqual([0, 4])
    const again = await home.run(['sessions', 'end', id])
    expect(again).toMatchObject({ code: 9, stderr: expect.stringContaining(`there is no session "${id}"`) })
  })

  test('T8 ends all others, then all', async () => {
    const { url, home } = await context()
    const others = [await elsewhere(url), await elsewhere(url)]
    const ran = await home.run(['sessions', 'end', '--others'])
    expect(ran).toMatchObject({ code: 0, stdout: '2 sessions have ended\n' })
    expect(await Promise.all([home, ...others].map(signedIn))).toEqual([0, 4, 4])
    const last = await home.run(['sessions', 'end', '--all'])
    expect(last).toMatchObject({ code: 0, stderr: expect.stringContaining('your present session has ended too') })
    expect(await signedIn(home)).toBe(4)
  })

  test('T8 without a choice, and with two, nothing ends', async () => {
    const { home } = await context()
    for (const args of [[], ['x', '--all'], ['--others', '--all'], ['']]) {
      expect((await home.run(['sessions', 'end', ...args])).code).not.toBe(0)
    }
    expect(await signedIn(home)).toBe(0)
  })

  test('T8 P8 the account of the machine names the user', async () => {
    const { home, admin, store } = await context()
    const local = ['--local', '--store', store]
    const unnamed = await home.run(['sessions', 'list', ...local])
    expect(unnamed).toMatchObject({ code: 2, stderr: expect.stringContaining('--user NAME') })
    expect((await listed(home, '--user', 'bob', ...local)).map(({ current }) => current)).toEqual([false])
    const ran = await home.run(['sessions', 'end', '--all', '--user', 'bob', ...local])
    expect(ran).toMatchObject({ code: 0, stdout: '1 session has ended\n' })
    expect(await signedIn(home)).toBe(4)
    const [entry] = await admin.audit.list({ limit: 1 })
    expect(entry).toMatchObject({ event: 'session.ended', who: expect.stringMatching(/^local:/), target: 'bob' })
  })
})
