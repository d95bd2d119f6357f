import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { serveMonitors } from '../server/with-monitors.ts'
import { chromiumMissing, launchChromium } from '../support/openid/chromium.ts'
import { peerSuite } from '../support/suite/peer.ts'

/** An address of this machine that is not loopback. Browsers send no Sec-Fetch-Site to it over plain http. */
const address = Object.values(networkInterfaces())
  .flat()
  .find((one) => one?.family === 'IPv4' && !one.internal)?.address
const missing = chromiumMissing ?? (address === undefined ? 'this machine has no IPv4 address but loopback' : undefined)

peerSuite(missing, 'the status page in a real browser without scripts', () => {
  let browser: Browser
  let at: Awaited<ReturnType<typeof serveMonitors>>
  /** Another site, whose page is a form that starts a check. */
  let other: Server
  beforeAll(async () => {
    at = await serveMonitors({ allowedHosts: ['svc.example'] }, address)
    other = createServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' })
      response.end(`<!doctype html><form method="post" action="http://svc.example:${at.port}/">
        <input name="ServerType" value="Batch"><button name="ExecutionMode" value="Advanced">prize</button></form>`)
    }).listen(0, address)
    await once(other, 'listening')
    browser = await launchChromium(`--host-resolver-rules=MAP svc.example ${address}, MAP evil.example ${address}`)
  }, 60_000)
  afterAll(async () => {
    await browser?.close()
    other?.close()
    await at?.close()
  })

  async function open(url: string, options: BrowserContextOptions = {}): Promise<Page> {
    const context = await browser.newContext({ javaScriptEnabled: false, ...options })
    const page = await context.newPage()
    await page.goto(url)
    return page
  }
  const own = (): string => `http://svc.example:${at.port}/`

  test('S12 a button runs the check and comes back to the page, where the report is open, also over plain http', async () => {
    const page = await open(own())
    await page.getByLabel('Run Basic of Batch').click()
    expect(page.url()).toBe(`${own()}?report=Batch-Basic#Batch-Basic`)
    const report = page.locator('#Batch-Basic')
    expect(await report.getAttribute('open')).toBe('')
    expect(await report.innerText()).toContain('tcp <b>queue</b>')
    expect(await page.locator('#Batch .top').innerText()).toContain('healthy')
    // The page reloads itself. A reload shows the report again and runs nothing.
    const ran = await report.locator('.muted').innerText()
    await page.reload()
    expect(await report.getAttribute('open')).toBe('')
    expect((await report.locator('.muted').innerText()).split('correlation')[1]).toBe(ran.split('correlation')[1])
    await page.context().close()
  })

  test('S12 a form of another site starts no check', async () => {
    const page = await open(`http://evil.example:${(other.address() as AddressInfo).port}/`)
    const [answer] = await Promise.all([page.waitForNavigation(), page.getByRole('button').click()])
    expect(answer?.status()).toBe(403)
    await page.goto(own())
    expect(await page.locator('#Batch-Advanced').count()).toBe(0)
    await page.context().close()
  })

  test('S12 a page that waits for a check is not interrupted by its own reload', async () => {
    const here = `http://${address}:${at.port}/`
    const page = await open(here)
    await page.route('**/*', async (route) => {
      if (route.request().method() === 'POST') {
        await new Promise((resolve) => setTimeout(resolve, 2_500))
        return await route.continue()
      }
      const response = await route.fetch()
      await route.fulfill({ response, headers: { ...response.headers(), refresh: '1' } })
    })
    await page.goto(here)
    await page.getByLabel('Run Standard of Batch').click()
    expect(page.url()).toBe(`${here}?report=Batch-Standard#Batch-Standard`)
    await page.context().close()
  })

  test.each([1280, 390, 320])(
    'nothing of the page is wider than a screen of %i pixels, in light and dark',
    async (width) => {
      for (const colorScheme of ['light', 'dark'] as const) {
        const page = await open(own(), { viewport: { width, height: 800 }, colorScheme, javaScriptEnabled: true })
        await page.getByLabel('Run Advanced of Ftp').click()
        const wide = await page.evaluate(`[...document.querySelectorAll('section, section *')]
        .filter((each) => each.closest('section').getBoundingClientRect().right < each.getBoundingClientRect().right
          || each.getBoundingClientRect().right > document.documentElement.clientWidth).map((each) => each.outerHTML)`)
        expect(wide).toEqual([])
        expect(await page.locator('#Ftp .top').innerText()).toContain('unhealthy')
        await page.context().close()
      }
    },
  )
})
