import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type PeopleProvider, startPeopleProvider, svcClient } from '../support/openid/people-provider.ts'
import { signInAsPerson } from '../support/openid/person.ts'
import { admin, startServe } from '../support/program/serve-command.ts'
import type { Serving } from '../support/program/serving.ts'
import { type Home, svcHome } from '../support/program/svc.ts'

/** The program for BROWSER, which signs carol in without showing anything. */
const person = `${process.execPath} ${join(import.meta.dirname, '../support/openid/person.ts')} %s`

describe('svc login --provider at svc serve and a real provider', () => {
  let provider: PeopleProvider
  let other: PeopleProvider
  let serverHome: Home
  let server: Serving
  let home: Home
  beforeAll(async () => {
    provider = await startPeopleProvider()
    other = await startPeopleProvider()
    serverHome = svcHome()
    home = svcHome()
    const of = ({ issuer }: PeopleProvider, name: string): string =>
      `  - name: ${name}\n    issuer: ${issuer}\n    clientId: ${svcClient}\n    roles: {claim: groups, map: {ops: Deploy}}\n`
    server = await startServe(serverHome, `auth:\n  openid:\n${of(provider, 'corp')}${of(other, 'branch')}`)
  }, 60_000)
  afterAll(async () => {
    await server?.stop()
    await Promise.all([provider?.close(), other?.close()])
    home?.remove()
    serverHome?.remove()
  })

  const login = (...more: readonly string[]): readonly string[] => [
    ...['login', '--server', server.url, '--insecure-storage', ...more],
  ]
  /** Signs in with a code, which a person approves in a browser elsewhere. */
  async function withCode(...args: readonly string[]) {
    let opened: Promise<unknown> | undefined
    const ran = await home.terminal(args, (screen) => {
      const [, address] = /(http:\/\/\S+user_code=\S+)/.exec(screen) ?? []
      if (address !== undefined && screen.includes('Waiting')) opened ??= signInAsPerson(address)
      return undefined
    })
    await opened
    return ran
  }

  test('A13 signs in with the browser, shows the provider and the roles of its claims, and signs out', async () => {
    const ran = await home.run(login('--provider', 'corp'), { env: { BROWSER: person } })
    expect(ran.stderr).not.toContain('Warning')
    expect(ran).toMatchObject({ code: 0 })
    expect(ran.stdout).toMatch(/^Signed in to http:\S+ as \S+ by corp \(roles: Deploy\)/)
    const whoami = JSON.parse((await home.run(['whoami', '--verify', '--json'])).stdout)
    expect(whoami).toMatchObject({ signIns: [{ provider: 'corp', roles: ['Deploy'], verified: true }] })
    expect((await home.run(['whoami', '--verify'])).stdout).toMatch(/signed in by +corp/)
    const sessions = JSON.parse((await home.run(['sessions', 'list', '--json'])).stdout)
    expect(sessions).toMatchObject({ sessions: [{ provider: 'corp', current: true }] })
    const audit = await serverHome.run([
      'audit',
      'list',
      '--store',
      join(serverHome.folder, 'server', 'svc.db'),
      '--json',
    ])
    const { entries } = JSON.parse(audit.stdout) as { readonly entries: readonly object[] }
    expect(entries[0]).toMatchObject({ event: 'signin.ok', target: 'carol', after: '{"provider":"corp"}' })
    const stored = home.files().filter((file) => file.endsWith('.json'))
    for (const { body } of provider.exchanges()) {
      const { id_token = '?', access_token = '?' } = JSON.parse(body) as Record<string, string | undefined>
      for (const file of stored) {
        const text = readFileSync(join(home.folder, file), 'utf8')
        expect(text).not.toContain(id_token)
        expect(text).not.toContain(access_token)
      }
    }
    expect((await home.run(['logout'])).stdout).toContain('the token is revoked')
    expect((await home.run(['whoami'])).code).toBe(4)
  })

  test('A13 signs in with a code where there is no browser, as the same user', async () => {
    const ran = await withCode(...login('--provider', 'corp'))
    expect(ran.code).toBe(0)
    expect(ran.stdout).toMatch(/Signed in to \S+ as \S+ by corp \(roles: Deploy\)/)
    const whoami = JSON.parse((await home.run(['whoami', '--verify', '--json'])).stdout)
    expect(whoami).toMatchObject({ signIns: [{ provider: 'corp', verified: true }] })
    await home.run(['logout'])
  })

  test('T7 a token of another issuer is refused by the server with exit code 4, and nothing is stored', async () => {
    const first = await home.run(login('--provider', 'branch'), { env: { BROWSER: person } })
    expect(first.code).toBe(0)
    await home.run(['logout'])
    const { id_token = '' } = JSON.parse(other.exchanges().at(-1)?.body ?? '{}') as Record<string, string>
    const ran = await home.run(login('--provider', 'corp', '--token-stdin'), { stdin: id_token })
    expect(ran.code).toBe(4)
    expect(`${ran.stdout}${ran.stderr}`).not.toContain(id_token)
    expect((await home.run(['whoami'])).code).toBe(4)
  })

  test('A13 a sign-in with a password names no provider', async () => {
    const ran = await home.run(login('-u', admin.userName, '--password-stdin'), { stdin: admin.password })
    expect(ran.stdout).toContain(`as ${admin.userName} (roles: Admin)`)
    expect((await home.run(['whoami'])).stdout).not.toContain('signed in by')
    await home.run(['logout'])
  })
})
