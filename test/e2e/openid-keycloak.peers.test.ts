import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chromiumMissing, launchChromium, signInOnPages } from '../support/openid/chromium.ts'
import { startServe } from '../support/program/serve-command.ts'
import type { Serving } from '../support/program/serving.ts'
import { type Home, svcHome } from '../support/program/svc.ts'
import {
  type Keycloak,
  keycloakAccount,
  keycloakMissing,
  keycloakPublicClient,
  startKeycloak,
} from '../support/servers/keycloak.ts'
import { peerSuite } from '../support/suite/peer.ts'

const account = { PERSON: keycloakAccount.user, PERSON_PASSWORD: keycloakAccount.password }

peerSuite(keycloakMissing ?? chromiumMissing, 'svc login --provider at svc serve and a real Keycloak', () => {
  let keycloak: Keycloak
  let home: Home
  let server: Serving
  let browser: Browser
  beforeAll(async () => {
    keycloak = await startKeycloak()
    home = svcHome()
    server = await startServe(
      home,
      `auth:\n  openid:\n  - name: shop\n    issuer: ${keycloak.issuer('shop')}\n    clientId: ${keycloakPublicClient}\n`,
    )
    browser = await launchChromium()
  }, 240_000)
  afterAll(async () => {
    await browser?.close()
    await server?.stop()
    home?.remove()
    await keycloak?.remove()
  }, 60_000)

  const signedIn = (): string => `Signed in to ${server.url} as ${keycloakAccount.user} by shop`
  const args = (): readonly string[] => ['login', '--server', server.url, '--provider', 'shop', '--insecure-storage']

  test('A13 signs in with Chromium, which svc opens, and out again', { timeout: 60_000 }, async () => {
    const BROWSER = `${process.execPath} ${join(import.meta.dirname, '../support/openid/chromium.ts')} %s`
    const ran = await home.svc(args(), { env: { BROWSER, ...account } })
    expect(ran).toMatchObject({ code: 0 })
    expect(ran.stdout).toContain(signedIn())
    expect((await home.svc(['logout'])).stdout).toContain('the token is revoked')
  })

  test('A13 signs in with a code, which Chromium approves', { timeout: 60_000 }, async () => {
    const context = await browser.newContext()
    const page = await context.newPage()
    const approve = async (address: string): Promise<void> => {
      await page.goto(address)
      await signInOnPages(page, account)
    }
    let approved: Promise<void> | undefined
    const ran = await home.terminal([...args(), '--no-browser'], (screen) => {
      const [, address] = /(http:\/\/\S+user_code=\S+)/.exec(screen) ?? []
      if (address !== undefined && screen.includes('Waiting')) approved ??= approve(address)
      return undefined
    })
    await approved
    expect(ran.stdout).toContain(signedIn())
    expect(ran.code).toBe(0)
    await context.close()
  })
})
