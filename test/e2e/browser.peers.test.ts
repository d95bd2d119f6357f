import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Accounts, startAccounts } from '../server/accounts.ts'
import { peerSuite } from '../support/suite/peer.ts'

const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)
const missing = program === undefined ? 'chromium is not installed' : undefined

peerSuite(missing, 'in a real browser', () => {
  let browser: Browser
  let at: Accounts
  /** A page of somebody else, at another origin. */
  let other: Server
  let foreign: string
  /** The same page at this server's own address, but for the port: of the same site. */
  let neighbour: string
  beforeAll(async () => {
    at = await startAccounts()
    other = createServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>elsewhere</title>')
    }).listen(0, '127.0.0.1')
    await once(other, 'listening')
    // Another site, not only another origin: a page at 127.0.0.1 would be of the same.
    const { port } = other.address() as AddressInfo
    foreign = `http://localhost:${port}/`
    neighbour = `http://127.0.0.1:${port}/`
    browser = await chromium.launch({
      ...(program === undefined ? {} : { executablePath: program }),
      args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
    })
  }, 60_000)
  afterAll(async () => {
    await browser?.close()
    other?.close()
    await at?.close()
  })

  const own = (path: string): string => `http://127.0.0.1:${at.port}${path}`

  /** A fresh page, and what its console and its policy complained about. */
  async function open(url: string): Promise<{ readonly page: Page; readonly complaints: string[] }> {
    const page = await browser.newPage()
    const complaints: string[] = []
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(String(error)))
    await page.goto(url)
    return { page, complaints }
  }

  test.each([
    ['/', 'svc'],
    ['/metadata', 'HealthCheckRequest'],
  ])('S6 the page %s renders under its own strict policy, without a violation', async (path, word) => {
    const { page, complaints } = await open(own(path))
    expect(await page.locator('body').innerText()).toContain(word)
    expect(complaints.filter((text) => !text.includes('favicon'))).toEqual([])
    await page.setViewportSize({ width: 390, height: 800 })
    const overflow = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
    expect(overflow).toBeLessThanOrEqual(0)
    await page.close()
  })

  test('S1 a page of another origin cannot read any answer', async () => {
    const { page } = await open(foreign)
    const read = await page.evaluate(
      `fetch(${JSON.stringify(own('/healthcheck?ExecutionMode=Basic&ServerType=Sql'))}).then((r) => r.text(), (e) => 'refused: ' + e.name)`,
    )
    expect(read).toBe('refused: TypeError')
    await page.close()
  })

  test.each([
    ['another site', () => foreign],
    ['another port of this host', () => neighbour],
  ])('S11 a script of %s gets no answer by JSONP', async (_, from) => {
    const { page } = await open(from())
    const url = own('/healthcheck?ExecutionMode=Basic&ServerType=Sql&SuppressErrorCodes=true&callback=got')
    const posted = await page.evaluate(`new Promise((resolve) => {
      window.got = (answer) => resolve('read: ' + answer.Status)
      const script = document.createElement('script')
      script.src = ${JSON.stringify(url)}
      script.onload = () => resolve('loaded, and not called')
      script.onerror = () => resolve('refused')
      document.head.append(script)
    })`)
    expect(posted).toBe('refused')
    await page.close()
  })

  test('T6 a form of another site changes nothing, whatever cookies the browser has', async () => {
    const { page } = await open(own('/'))
    const { cookie } = await at.signIn()
    const pairs = cookie.split('; ').map((pair) => pair.split('='))
    await page.context().addCookies(pairs.map(([name = '', value = '']) => ({ name, value, url: own('/') })))
    await page.goto(own('/auth'))
    expect(await page.locator('body').innerText()).toContain('"UserName":"Ann"')
    await page.goto(foreign)
    await page.setContent(
      `<form method="post" action="${own('/assignroles')}"><input name="UserName" value="Ned"><input name="Roles" value="Admin"></form>`,
    )
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.url().includes('/assignroles')),
      page.evaluate('document.forms[0].submit()'),
    ])
    expect([401, 403]).toContain(answer.status())
    expect((await at.admin.roles.show('Ned')).roles).toEqual([])
    await page.close()
  })
})
