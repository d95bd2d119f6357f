/**
 * `npm run page-pictures`: makes the pictures of docs/status-page.md with Chromium, of real servers, and prints how large
 * the pages are and how long they take. The history of 90 days is simulated.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser, BrowserContextOptions } from 'playwright-core'
import { launchChromium } from '../../test/support/openid/chromium.ts'
import { envOf, type ServeNode, startNode } from '../../test/support/program/serve-node.ts'
import { root } from '../pages/stage.ts'
import { startManyServers } from './many-servers.ts'
import { paletted } from './png.ts'
import { writeSimulatedHistory } from './simulated-history.ts'
import { startTenServers, yamlOf } from './ten-servers.ts'
import { timesOf } from './times.ts'

const folder = join(root, 'docs', 'status-page')
mkdirSync(folder, { recursive: true })
const program = join(root, 'bin', 'run.js')
const user = { userName: 'viewer', password: 'quiet-lantern-73' } as const
/** So that svc treats the browser as one of another machine. */
const elsewhere = { 'x-forwarded-for': '192.0.2.9' }
const desktop = { width: 960, height: 700 }
const phone = { width: 390, height: 844 }
const wall = { width: 1_920, height: 1_080 }

/** Saves what a page shows to a user in one browser. */
async function take(
  browser: Browser,
  serve: ServeNode,
  name: string,
  path: string,
  options: BrowserContextOptions,
): Promise<void> {
  const context = await browser.newContext({ extraHTTPHeaders: elsewhere, javaScriptEnabled: false, ...options })
  const page = await context.newPage()
  await page.goto(`${serve.url}/sign-in`)
  await page.getByLabel('User name').fill(user.userName)
  await page.getByLabel('Password').fill(user.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.goto(`${serve.url}${path}`)
  const picture = paletted(await page.screenshot({ animations: 'allow' }))
  writeFileSync(join(folder, `${name}.png`), picture)
  process.stdout.write(`${name}.png: ${Math.round(picture.length / 1_000)} kB\n`)
  await context.close()
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
  await take(browser, serve, 'desktop', '/', { viewport: desktop, colorScheme: 'light' })
  await take(browser, serve, 'phone', '/', { viewport: phone, colorScheme: 'dark' })
  const chart = '/?monitor=App%2Fhttp%20checkout#response-time'
  await take(browser, serve, 'monitor', chart, { viewport: { width: 960, height: 570 }, colorScheme: 'light' })
  const board = { viewport: wall, deviceScaleFactor: 0.5, colorScheme: 'dark' } as const
  await take(browser, serve, 'board', '/board?type=Sql,App,Batch', board)
  process.stdout.write(await timesOf('ten monitors', serve.url, ['/', '/?monitor=App%2Fhttp%20checkout', '/board']))
  await serve.stop()
  await ten.close()
  rmSync(home, { recursive: true, force: true })
}

async function tenThousand(): Promise<void> {
  const many = await startManyServers(10_000)
  const home = mkdtempSync(join(tmpdir(), 'svc-pictures-'))
  const serve = await startNode({ store: join(home, 'store', 'svc.db'), yaml: many.yaml })
  await many.checked()
  const paths = ['/', '/?find=shop-777', '/?state=healthy', '/?open=App', '/?state=healthy&skip=9900', '/board']
  process.stdout.write(await timesOf('10,000 monitors', serve.url, paths))
  await serve.stop()
  await many.close()
  rmSync(home, { recursive: true, force: true })
}

const browser = await launchChromium()
try {
  if (process.argv[2] !== 'many') await tenServers(browser)
  if (process.argv[2] !== 'ten') await tenThousand()
} finally {
  await browser.close()
}
process.exit()
