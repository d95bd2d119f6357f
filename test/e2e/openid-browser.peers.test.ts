import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chromiumMissing, launchChromium, signInOnPages } from '../support/openid/chromium.ts'
import { type PeopleProvider, startPeopleProvider, svcClient } from '../support/openid/people-provider.ts'
import { startServe } from '../support/program/serve-command.ts'
import type { Serving } from '../support/program/serving.ts'
import { type Home, svcHome } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { peerSuite } from '../support/suite/peer.ts'

peerSuite(chromiumMissing, 'a real browser at svc serve and a real provider', () => {
  let provider: PeopleProvider
  let home: Home
  let server: Serving
  let browser: Browser
  beforeAll(async () => {
    provider = await startPeopleProvider()
    home = svcHome()
    server = await startServe(
      home,
      `auth:\n  openid:\n  - name: corp\n    issuer: ${provider.issuer}\n    clientId: ${svcClient}\n    roles: {claim: groups, map: {ops: Deploy}}\n`,
    )
    browser = await launchChromium()
  }, 60_000)
  afterAll(async () => {
    await browser?.close()
    await server?.stop()
    await provider?.close()
    home?.remove()
  })

  test('A13 GET /auth/corp signs in through the pages of the provider, and GET /auth/logout out again', async () => {
    const context = await browser.newContext()
    const page = await context.newPage()
    await page.goto(`${server.url}/auth/corp`)
    expect(page.url()).toContain(provider.issuer)
    await signInOnPages(page)
    expect(page.url()).toBe(`${server.url}/`)
    // The session is the server's, in a cookie that no script reads.
    const cookies = await context.cookies(server.url)
    expect(cookies.find(({ name }) => name === 'ss-id')).toMatchObject({ httpOnly: true })
    const answer = await page.goto(`${server.url}/auth.json`)
    expect(await answer?.json()).toMatchObject({ UserName: 'carol', Roles: ['Deploy'] })
    const sessions = await page.goto(`${server.url}/sessions.json`)
    expect(await sessions?.json()).toMatchObject({ Sessions: [{ Provider: 'corp', Current: true }] })
    await page.goto(`${server.url}/auth/logout.json`)
    expect((await page.goto(`${server.url}/auth.json`))?.status()).toBe(401)
    await context.close()
  })

  test('A13 svc login opens Chromium, and receives the answer of its user', async () => {
    const terminal = temporaryHome()
    const BROWSER = `${process.execPath} ${join(import.meta.dirname, '../support/openid/chromium.ts')} %s`
    const args = ['login', '--server', server.url, '--provider', 'corp', '--insecure-storage']
    const ran = await terminal.svc(args, { env: { BROWSER } })
    expect(ran).toMatchObject({ code: 0 })
    expect(ran.stdout).toContain(`Signed in to ${server.url} as carol by corp (roles: Deploy)`)
    expect((await terminal.svc(['logout'])).stdout).toContain('the token is revoked')
  })

  test('A13 svc login --no-browser prints a code, which Chromium approves', async () => {
    const terminal = temporaryHome()
    const context = await browser.newContext()
    const page = await context.newPage()
    let approved: Promise<void> | undefined
    const args = ['login', '--server', server.url, '--provider', 'corp', '--insecure-storage', '--no-browser']
    const ran = await terminal.terminal(args, (screen) => {
      const [, code = ''] = /enter the code (\S+):/.exec(screen) ?? []
      if (code !== '' && screen.includes('Waiting')) approved ??= approve(code)
      return undefined
    })
    async function approve(code: string): Promise<void> {
      await page.goto(`${provider.issuer}/device`)
      await page.locator('input[name=user_code]').fill(code)
      await signInOnPages(page)
    }
    await approved
    expect(ran.stdout).toContain(`as carol by corp (roles: Deploy)`)
    expect(ran.code).toBe(0)
    await context.close()
  })
})
