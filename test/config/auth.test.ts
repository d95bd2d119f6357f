import { describe, expect, test } from 'vitest'
import { files } from '../support/engine/files.ts'
import { load, problemsOf, refused } from './given.ts'

const corp = (more: string): string =>
  `auth: {openid: [{name: corp, issuer: "https://login.example.com", clientId: svc${more === '' ? '' : `, ${more}`}}]}`

describe('the section auth of svc.yaml', () => {
  test('A13 an OpenID provider has defaults for everything but its name, its issuer and the client', async () => {
    const { auth } = await load(corp(''))
    expect(auth?.openid).toEqual([
      {
        name: 'corp',
        issuer: 'https://login.example.com',
        clientId: 'svc',
        scope: 'openid profile email',
        tolerance: 60_000,
      },
    ])
  })

  test('A13 its secret is read at each use and never shown', async () => {
    const { auth } = await load(corp('clientSecret: {env: OIDC_SECRET}'), { OIDC_SECRET: 'a secret' })
    const [provider] = auth?.openid ?? []
    expect(await provider?.clientSecret?.reveal(files)).toBe('a secret')
    expect(JSON.stringify(auth)).not.toContain('a secret')
  })

  test('A13 an issuer on loopback may use http', async () => {
    const text = 'auth: {openid: [{name: corp, issuer: "http://127.0.0.1:8080/realms/x", clientId: svc}]}'
    expect((await load(text)).auth?.openid).toHaveLength(1)
  })

  test.for([
    ['the name logout', 'name: logout', 'auth.openid[0].name is logout, which is not free: choose another name'],
    ['capitals in the name', 'name: Corp', 'auth.openid[0].name has the invalid value "Corp"'],
    ['http to another machine', 'issuer: "http://login.example.com"', 'auth.openid[0].issuer begins with http://'],
    ['a query in the issuer', 'issuer: "https://login.example.com/?a=b"', 'must have neither a query'],
    ['a scope without openid', 'scope: profile', 'auth.openid[0].scope must contain openid'],
    ['a tolerance of an hour', 'tolerance: 1h', 'auth.openid[0].tolerance is longer than 5m'],
    ['a secret in clear text', 'clientSecret: abc', 'must refer to a secret, not contain it'],
    ['roles without a claim', 'roles: {map: {a: Admin}}', 'auth.openid[0].roles.claim is missing'],
    ['an invisible character in a role', 'roles: {claim: g, map: {a: "Ad\\u200bmin"}}', 'must not contain control'],
  ] as const)('A13 a provider with %s is a mistake', async ([, more, message]) => {
    const text = corp(more)
      .replace(/name: corp, (?=.*name: )/, '')
      .replace(/issuer: "https:\/\/login.example.com", (?=.*issuer: )/, '')
    expect(problemsOf(await refused(text)).join('\n')).toContain(message)
  })

  test('A13 two providers of one name are a mistake', async () => {
    const one = '{name: corp, issuer: "https://login.example.com", clientId: svc}'
    expect(problemsOf(await refused(`auth: {openid: [${one}, ${one}]}`)).join()).toContain(
      'as is that of another provider',
    )
  })
})
