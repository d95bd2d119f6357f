import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { signInAsPerson } from '../support/openid-person.ts'
import { type PeopleProvider, startPeopleProvider, svcClient } from '../support/sign-in-issuer.ts'
import { startStandIn } from '../support/openid-stand-in.ts'
import { type Home, svcHome } from '../support/svc.ts'

const ends: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** The program for BROWSER, which signs carol in without showing anything. */
const person = `${process.execPath} ${join(import.meta.dirname, '../support/openid-person.ts')} %s`

async function context(options: Parameters<typeof startPeopleProvider>[0] = {}, meta: Record<string, string> = {}) {
  const provider = await startPeopleProvider(options)
  const server = await startStandIn({ issuer: provider.issuer, clientId: svcClient, scope: 'openid email', ...meta })
  const home = svcHome()
  ends.push(provider.close, server.close, home.remove)
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
    const ran = await home.svc(args, { env: { BROWSER: person } })
    expect(ran.stderr).toContain(`Sign in at ${provider.issuer} in the browser`)
    expect(ran).toMatchObject({ code: 0 })
    expect(ran.stdout).toContain(`Signed in to ${server.url} as carol by corp (roles: Deploy)`)
    expect(server.accepted).toEqual(['carol'])
    expect(server.requests.at(-1)).toMatchObject({ path: 'POST /auth/corp', body: { Meta: { refresh: 'rotate' } } })
    expect(filesOf(home)).toContain('bearer-of-svc')
    expect(tokensOf(provider)).toHaveLength(2)
    for (const token of tokensOf(provider)) expect(`${filesOf(home)}${ran.stdout}${ran.stderr}`).not.toContain(token)
    const whoami = await home.svc(['whoami', '--json'])
    expect(JSON.parse(whoami.stdout)).toMatchObject({ user: 'carol', provider: 'corp' })
  })

  test('A13 signs in with a code of the provider where there is no browser', async () => {
    const { provider, server, home, args } = await context()
    let opened: Promise<unknown> | undefined
    const ran = await home.terminal([...args, '--no-browser'], (shown) => {
      const [, address] = /(http:\/\/\S+user_code=\S+)/.exec(shown) ?? []
      if (address !== undefined && shown.includes('Waiting')) opened ??= signInAsPerson(address)
      return undefined
    })
    await opened
    expect(ran.code).toBe(0)
    expect(ran.stdout).toContain(`${provider.issuer}/device`)
    expect(ran.stdout).toContain(`Signed in to ${server.url} as carol by corp`)
    expect(provider.requests()).not.toContain('GET /auth')
  })
})
