/**
 * `npm run page-pictures`: makes the pictures of docs/status-page.md with Chromium, of real servers, and prints how large
 * the pages are and how long they take. The history of 90 days is simulated.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { launchChromium } from '../../test/support/openid/chromium.ts'
import { envOf, type ServeNode, startNode } from '../../test/support/program/serve-node.ts'
import { root } from '../pages/stage.ts'
import { startManyServers } from './many-servers.ts'
import { compressed } from './png.ts'
import { writeSimulatedHistory } from './simulated-history.ts'
import { startTenServers, yamlOf } from './ten-servers.ts'
import { timesOf } from './times.ts'

const folder = join(root, 'docs', 'status-page')
mkdirSync(folder, { recursive: true })
const program = join(root, 'bin', 'run.js')
const user = { userName: 'viewer', password: 'quiet-lantern-73' } as const
/** So that svc treats the browser as one of another machine. */
const elsewhere = { 'x-forwarded-for': '192.0.2.9' }
const desktop = { width: 960, height: 900 }
const phone = { width: 390, height: 844 }
const wall = { width: 1_920, height: 1_080 }

async function opened(browser: Browser, serve: ServeNode, options: BrowserContextOptions): Promise<Page> {
  const context = await browser.newContext({ extraHTTPHeaders: elsewhere, javaScriptEnabled: false, ...options })
  const page = await context.newPage()
  await page.goto(`${serve.url}/sign-in`)
  await page.getByLabel('User name').fill(user.userName)
  await page.getByLabel('Password').fill(user.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  return page
}

/** Saves what the page shows, up to this height, with the port of the trial replaced by that of the documentation. */
async function save(page: Page, name: string, height?: number): Promise<void> {
  const path = join(folder, `${name}.png`)
  const { width } = page.viewportSize() ?? desktop
  const whole = await page.evaluate('document.documentElement.scrollHeight')
  const clip = height === undefined ? {} : { clip: { x: 0, y: 0, width, height: Math.min(height, Number(whole)) } }
  await page.screenshot({ path, ...clip, fullPage: height !== undefined, animations: 'allow' })
  writeFileSync(path, compressed(readFileSync(path)))
  process.stdout.write(`${name}.png: ${Math.round(statSync(path).size / 1_000)} kB\n`)
}

async function tenServers(browser: Browser): Promise<void> {
  const ten = await startTenServers()
  const home = mkdtempSync(join(tmpdir(), 'svc-pictures-'))
  const store = join(home, 'store', 'svc.db')
  await writeSimulatedHistory(store, ten.servers)
  const serve = await startNode({ store, yaml: yamlOf(ten.servers, '{every: 10s}') })
  execFileSync(
    process.execPath,
    [program, 'users', 'add', user.userName, '--permission', 'health', '--password-stdin'],
    {
      env: { ...envOf(home), SVC_STORE: store },
      input: user.password,
      stdio: ['pipe', 'ignore', 'inherit'],
    },
  )
  await pause(15_000)
  await ten.breakSome()
  await pause(45_000)
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await opened(browser, serve, { viewport: desktop, colorScheme })
    await save(page, `desktop-${colorScheme}`, 940)
    await page.context().close()
    const small = await opened(browser, serve, { viewport: phone, colorScheme })
    await save(small, `phone-${colorScheme}`, 1_100)
    await small.context().close()
  }
  const page = await opened(browser, serve, { viewport: desktop, colorScheme: 'light' })
  await page.goto(`${serve.url}/?monitor=App%2Fhttp%20checkout`)
  await save(page, 'monitor', 1_100)
  await page.goto(`${serve.url}/`)
  await page.getByLabel('Run Standard of App').click()
  await page.setViewportSize({ width: 1_000, height: 640 })
  await page.locator('#App-Standard').scrollIntoViewIfNeeded()
  await save(page, 'report')
  await page.context().close()
  const board = await opened(browser, serve, { viewport: wall, deviceScaleFactor: 0.5, colorScheme: 'dark' })
  await board.goto(`${serve.url}/board?type=Sql,App,Batch`)
  await save(board, 'board')
  const session = await board.context().newCDPSession(board)
  serve.signal('SIGSTOP')
  await pause(58_000)
  const { data } = await session.send('Page.captureScreenshot', {
    format: 'png',
    clip: { x: 0, y: 0, ...wall, scale: 0.5 },
  })
  serve.signal('SIGCONT')
  writeFileSync(join(folder, 'board-stale.png'), compressed(Buffer.from(data, 'base64')))
  await board.context().close()
  process.stdout.write(await timesOf('ten monitors', serve.url, ['/', '/?monitor=App%2Fhttp%20checkout', '/board']))
  await serve.stop()
  await ten.close()
  rmSync(home, { recursive: true, force: true })
}

async function tenThousand(browser: Browser): Promise<void> {
  const many = await startManyServers(10_000)
  const home = mkdtempSync(join(tmpdir(), 'svc-pictures-'))
  const serve = await startNode({ store: join(home, 'store', 'svc.db'), yaml: many.yaml })
  await many.checked()
  const context = await browser.newContext({ viewport: desktop, colorScheme: 'light', javaScriptEnabled: false })
  const page = await context.newPage()
  await page.goto(`${serve.url}/`)
  await save(page, 'ten-thousand', 860)
  await context.close()
  const paths = ['/', '/?find=shop-777', '/?state=healthy', '/?open=App', '/?state=healthy&skip=9900', '/board']
  process.stdout.write(await timesOf('10,000 monitors', serve.url, paths))
  await serve.stop()
  await many.close()
  rmSync(home, { recursive: true, force: true })
}

const browser = await launchChromium()
try {
  if (process.argv[2] !== 'many') await tenServers(browser)
  if (process.argv[2] !== 'ten') await tenThousand(browser)
} finally {
  await browser.close()
}
process.exit()
