import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type PeopleProvider, startPeopleProvider, svcClient } from '../support/openid/people-provider.ts'
import { signInAsPerson } from '../support/openid/person.ts'
import { startStandIn } from '../support/openid/stand-in.ts'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import { suiteWith } from '../support/suite/peer.ts'

/** The program for BROWSER, which signs carol in without showing anything. */
const person = `${process.execPath} ${join(import.meta.dirname, '../support/openid/person.ts')} %s`

async function context(options: Parameters<typeof startPeopleProvider>[0] = {}, meta: Record<string, string> = {}) {
  const provider = await startPeopleProvider(options)
  const server = await startStandIn({ issuer: provider.issuer, clientId: svcClient, scope: 'openid email', ...meta })
  const home = temporaryHome()
  onTestFinished(provider.close)
  onTestFinished(server.close)
  return { provider, server, home, args: ['login', '--server', server.url, '--provider', 'corp', '--insecure-storage'] }
}

const filesOf = (home: Home): string =>
  home
    .files()
    .filter((file) => /\.json$/.test(file))
    .map((file) => readFileSync(join(home.folder, file), 'utf8'))
    .join('\n')

const tokensOf = (provider: PeopleProvider): readonly string[] =>
  provider.exchanges().flatMap(({ body }) => {
    const { id_token, access_token } = JSON.parse(body) as Record<string, string | undefined>
    return [id_token, access_token].filter((token) => token !== undefined)
  })

describe('svc login --provider at a real provider, with a simulated server', () => {
  test('A13 signs in with the browser of this machine, and stores only the tokens of svc', async () => {
    const { provider, server, home, args } = await context()
    const ran = await home.run(args, { env: { BROWSER: person } })
    expect(ran.stderr).toContain(`Sign in at ${provider.issuer} in the browser`)
    expect(ran).toMatchObject({ code: 0 })
    expect(ran.stdout).toContain(`Signed in to ${server.url} as carol by corp (roles: Deploy)`)
    expect(server.accepted).toEqual(['carol'])
    expect(server.requests.at(-2)).toMatchObject({ path: 'POST /auth/corp', body: { Meta: { refresh: 'rotate' } } })
    expect(filesOf(home)).toContain('bearer-of-svc')
    expect(tokensOf(provider)).toHaveLength(2)
    for (const token of tokensOf(provider)) expect(`${filesOf(home)}${ran.stdout}${ran.stderr}`).not.toContain(token)
    const whoami = await home.run(['whoami', '--json'])
    expect(JSON.parse(whoami.stdout)).toMatchObject({ signIns: [{ user: 'carol', provider: 'corp' }] })
  })

  test('A13 signs in with a code of the provider where there is no browser', async () => {
    const { provider, server, home, args } = await context()
    let opened: Promise<unknown> | undefined
    const ran = await home.terminal([...args, '--no-browser'], (screen) => {
      const [, address] = /(http:\/\/\S+user_code=\S+)/.exec(screen) ?? []
      if (address !== undefined && screen.includes('Waiting')) opened ??= signInAsPerson(address)
      return undefined
    })
    await opened
    expect(ran.code).toBe(0)
    expect(ran.stdout).toContain(`${provider.issuer}/device`)
    expect(ran.stdout).toContain(`Signed in to ${server.url} as carol by corp`)
    expect(provider.requests()).not.toContain('GET /auth')
  })

  test('A13 a code that was used, its verifier and a used device code are refused by the provider', async () => {
    const { provider, home, args } = await context()
    expect(await home.run(args, { env: { BROWSER: person } })).toMatchObject({ code: 0 })
    let opened: Promise<unknown> | undefined
    const ran = await home.terminal([...args, '--no-browser'], (screen) => {
      const [, address] = /(http:\/\/\S+user_code=\S+)/.exec(screen) ?? []
      if (address !== undefined && screen.includes('Waiting')) opened ??= signInAsPerson(address)
      return undefined
    })
    await opened
    expect(ran.code).toBe(0)
    const used = provider.exchanges().filter(({ status }) => status === 200)
    expect(used.map(({ form }) => form.has('code') || form.has('device_code'))).toEqual([true, true])
    for (const { form } of used) {
      const again = await fetch(`${provider.issuer}/token`, { method: 'POST', body: form })
      expect(again.status).toBe(400)
      expect(await again.json()).toMatchObject({ error: 'invalid_grant' })
    }
  })

  test('A13 a user who declines the device ends with exit code 4, and nothing is stored', async () => {
    const { server, home, args } = await context()
    let opened: Promise<unknown> | undefined
    const ran = await home
      .terminal(args, (screen) => {
        const [, address] = /(http:\/\/\S+user_code=\S+)/.exec(screen) ?? []
        if (address !== undefined && screen.includes('Waiting')) opened ??= signInAsPerson(address, { declines: true })
        return undefined
      })
      .finally(() => opened)
    expect(ran.code).toBe(4)
    expect(ran.stdout).toContain('was declined')
    expect(server.requests.map(({ path }) => path)).toEqual(['GET /metadata/app.json'])
    expect(home.files().filter((file) => file.endsWith('.json'))).toEqual([])
  })

  test.each([
    ['the browser', []],
    ['the code', ['--no-browser']],
  ])('K7 ctrl-C while it waits for %s exits with 130 and stores nothing', async (_, more) => {
    const { provider, server, home, args } = await context()
    const ran = await home.terminal(
      [...args, ...more],
      (screen) => (/code_challenge=|Waiting/.test(screen) ? { signal: 'SIGINT' } : undefined),
      { BROWSER: 'true' },
    )
    expect(ran.code).toBe(130)
    expect(server.requests.map(({ path }) => path)).toEqual(['GET /metadata/app.json'])
    expect(provider.exchanges()).toEqual([])
    expect(home.files().filter((file) => file.endsWith('.json'))).toEqual([])
  })

  test('A13 an unknown provider is exit code 2 and names those of the server; others are refused by type', async () => {
    const { provider, server, home } = await context()
    const unknown = await home.run(['login', '--server', server.url, '--provider', 'copr', '--insecure-storage'])
    expect(unknown.code).toBe(2)
    expect(unknown.stderr).toContain(`${server.url} has no sign-in provider "copr"`)
    expect(unknown.stderr).toContain('Its providers: credentials, corp, badge')
    const other = await home.run(['login', '--server', server.url, '--provider', 'badge', '--insecure-storage'])
    expect(other.code).toBe(2)
    expect(other.stderr).toContain('Its type is saml')
    expect(provider.requests()).toEqual([])
  })

  test('A13 a token that the server refuses is exit code 4, and nothing is stored', async () => {
    const { home, args } = await context()
    const ran = await home.run([...args, '--token-stdin'], { stdin: 'an-opaque-token-of-another-provider' })
    expect(ran.code).toBe(4)
    expect(`${ran.stdout}${ran.stderr}`).not.toContain('an-opaque-token')
    expect(home.files().filter((file) => file.endsWith('.json'))).toEqual([])
  })

  test('A13 --quiet and --json keep the answer apart from the address, which is always shown', async () => {
    const { provider, home, args } = await context()
    const ran = await home.run([...args, '--quiet', '--json'], { env: { BROWSER: person } })
    expect(ran.stderr).toContain(`${provider.issuer}/auth?`)
    expect(JSON.parse(ran.stdout)).toMatchObject({ signIns: [{ user: 'carol', provider: 'corp' }] })
  })

  test('A13 a sign-in for one command ends with it', async () => {
    const { server, home, args } = await context()
    const some = args.filter((arg) => arg !== '--insecure-storage')
    const ran = await home.run([...some, '--', 'printenv', 'SVC_TOKEN'], { env: { BROWSER: person } })
    expect(ran.stdout).toContain('bearer-of-svc')
    expect(server.requests.map(({ path }) => path).slice(0, 2)).toEqual(['GET /metadata/app.json', 'POST /auth/corp'])
    expect(home.files().filter((file) => file.endsWith('.json'))).toEqual([])
  })

  test('A13 svc refuses a second server with the client of the first before the browser opens, unless --same-client accepts it', async () => {
    const { provider, server, home, args } = await context()
    const ran = await home.run(args, { env: { BROWSER: person } })
    expect(ran.stderr).not.toContain('Warning')
    expect((await home.run(args, { env: { BROWSER: person } })).stderr).not.toContain('Warning')
    await home.run(['logout'])
    const second = await startStandIn({ issuer: provider.issuer, clientId: svcClient })
    onTestFinished(second.close)
    const requestsBefore = provider.requests().length
    const login = ['login', '--server', second.url, '--provider', 'corp', '--insecure-storage']
    const refused = await home.run(login, { env: { BROWSER: person } })
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain(
      `${second.url} uses the same client of ${provider.issuer} as ${server.url}: each of the two could sign in`,
    )
    expect(provider.requests()).toHaveLength(requestsBefore)
    expect((await home.run([...login, '--same-client'], { env: { BROWSER: person } })).code).toBe(0)
  })

  test('A13 with a password or a token, no provider is looked up', async () => {
    const { provider, server, home, args } = await context()
    await home.run([...args, '-u', 'carol', '--password-stdin'], { stdin: 'word' })
    await home.run([...args, '--token-stdin'], { stdin: 'opaque' })
    expect(server.requests.map(({ path }) => path)).toEqual(['POST /auth/corp', 'POST /auth/corp'])
    expect(provider.requests()).toEqual([])
    const misplaced = await home.run(['login', '--server', server.url, '-u', 'carol', '--no-browser'])
    expect(misplaced).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--no-browser is for OpenID providers'),
    })
  })
})

suiteWith(opensslMissing(), 'svc login --provider over TLS, with a simulated server', () => {
  test('K5 the certificate of the provider is checked, and --ca-file applies to it', async () => {
    const certificates = makeCertificates()
    onTestFinished(certificates.remove)
    const { provider, home, args } = await context({ tls: certificates.good })
    expect(provider.issuer).toMatch(/^https:/)
    const distrusted = await home.run(args, { env: { BROWSER: person } })
    expect(distrusted.code).toBe(6)
    expect(distrusted.stderr).toMatch(/identity provider: TLS with .* failed/)
    expect(distrusted.stderr).toContain('--ca-file')
    expect(provider.requests()).toEqual([])
    // The simulated server does not trust the certificate, so the sign-in gets as far as its refusal.
    const BROWSER = `env NODE_TLS_REJECT_UNAUTHORIZED=0 ${person}`
    const trusted = await home.run([...args, '--ca-file', certificates.caFile], { env: { BROWSER } })
    expect(trusted.code).toBe(4)
    expect(provider.exchanges().map(({ status }) => status)).toEqual([200])
  })
})
