import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { early } from '../server/scheduled-web.ts'
import { chromiumMissing, launchChromium } from '../support/openid/chromium.ts'
import { startNode } from '../support/program/serve-node.ts'
import { peerSuite } from '../support/suite/peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { until } from '../support/suite/until.ts'

const maxMs = 240_000

/** A listener that keeps its connections open until it closes. */
async function listen(port = 0) {
  const open = new Set<Socket>()
  const server: Server = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => open.delete(socket))
  }).listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

async function opened(browser: Browser, url: string): Promise<Page> {
  const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 390, height: 800 } })
  const page = await context.newPage()
  await page.goto(url)
  return page
}

peerSuite(chromiumMissing, 'the incidents of the status page in a real browser without scripts', () => {
  test(
    'W20 a listener that goes down is first in doubt, then an incident with its beginning, then over, and the page shows it by itself',
    async () => {
      let listener = await listen()
      onTestFinished(async () => await listener.close())
      const { port } = listener
      const name = early('Sql', 'tcp', 10_000)
      const yaml = (confirm: string): string => `serve: {every: 10s}
types:
  Sql: {host: false, monitors: [{kind: tcp, name: ${name}, host: 127.0.0.1, port: ${port}, timeout: 2s, confirm: ${confirm}}]}
  App: {host: false, monitors: [{kind: tcp, name: shop, host: 127.0.0.1, port: ${port}, timeout: 2s, dependsOn: Sql/${name}, confirm: ${confirm}}]}
`
      const folder = temporaryFolder()
      // The doubt lasts until the test shortens it.
      await using serve = await startNode({ store: join(folder, 'store', 'svc.db'), yaml: yaml('10m') })
      const browser = await launchChromium()
      onTestFinished(() => browser.close())
      // Opened once: from here on the page reloads itself.
      const page = await opened(browser, `http://127.0.0.1:${serve.port}/`)
      const text = async (): Promise<string> =>
        await page
          .locator('body')
          .innerText()
          .catch(() => '')
      const shows = async (expected: string): Promise<boolean> =>
        await until(async () => (await text()).includes(expected), maxMs, 200)
      /** Somebody looks again and again: the page of a server without doubts reloads itself every 30 s only. */
      const look = async (holds: (body: string) => boolean): Promise<boolean> =>
        await until(
          async () => {
            // Its own reload may come between.
            await page.reload().catch(() => {})
            const body = await text()
            return body !== '' && holds(body)
          },
          maxMs,
          500,
        )
      await look((body) => body.includes('All healthy'))
      await listener.close()
      await look((body) => body.includes(`Sql tcp ${name} may have failed since`))
      expect(await text()).toContain('in doubt: not confirmed yet')
      writeFileSync(serve.config, yaml('5s'))
      serve.signal('SIGHUP')
      await shows(`Sql tcp ${name} has failed since`)
      const heading = await page.locator('h1').innerText()
      const [began = ''] = /\d\d:\d\d:\d\d UTC/.exec(heading) ?? []
      expect(began).not.toBe('')
      await look((body) => body.includes('1 monitor fails because of it'))
      expect(await page.locator('#incidents article').count()).toBe(1)
      expect(await page.locator('#incidents li').first().isVisible()).toBe(false)
      await page.locator('#incidents summary').first().click()
      await page.getByText('Keep this list open').click()
      expect(await page.locator('#incidents li').first().innerText()).toContain('App tcp shop')
      await page.reload()
      expect(await page.locator('#incidents li').first().isVisible()).toBe(true)
      const box = await page.locator('#incidents').boundingBox()
      expect(box && box.x + box.width).toBeLessThanOrEqual(390)
      listener = await listen(port)
      await look((body) => !body.includes(`Sql tcp ${name} has failed since`))
      await shows('All healthy')
      await page.goto(`http://127.0.0.1:${serve.port}/`)
      await page.locator('#incidents summary').first().click()
      const over = await page.locator('#incidents .ended').innerText()
      expect(over).toContain(`Sql tcp ${name} connect`)
      expect(over).toContain(`${began} to `)
      expect(over).toContain('recovered')
    },
    maxMs * 2,
  )
})
