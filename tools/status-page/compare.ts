/**
 * `node tools/status-page/compare.ts`: the status pages of svc and of Monit (Debian's package `monit`) over the same ten
 * servers of this machine, in one run: bytes and times of what a browser loads, by Chromium and by 20 requests.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { launchChromium } from '../../test/support/openid/chromium.ts'
import { startNode } from '../../test/support/program/serve-node.ts'
import { startTenServers, type TrialServer, yamlOf } from './ten-servers.ts'
import { timesOf } from './times.ts'

const freePort = await new Promise<number>((resolve) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo
    server.close(() => resolve(port))
  })
})

const checkOf = ({ name, kind, port }: TrialServer): string =>
  `check host "${name}" with address 127.0.0.1\n  if failed port ${port}${kind === 'http' ? ' protocol http request "/health"' : ''} then alert\n`

const ten = await startTenServers()
const home = mkdtempSync(join(tmpdir(), 'svc-compare-'))
const monitrc = join(home, 'monitrc')
const files = ['pid', 'id', 'state'].map((file) => `set ${file}file ${join(home, file)}\n`).join('')
writeFileSync(
  monitrc,
  `set daemon 10\n${files}set httpd port ${freePort} use address 127.0.0.1 allow 127.0.0.1\n${ten.servers.map(checkOf).join('')}`,
  { mode: 0o600 },
)
const monit = spawn('monit', ['-I', '-c', monitrc], { stdio: 'ignore' })
const serve = await startNode({ store: join(home, 'store', 'svc.db'), yaml: yamlOf(ten.servers, '{every: 10s}') })
await pause(15_000)
await ten.breakSome()
await pause(35_000)
const browser = await launchChromium()
for (const [name, url] of [
  ['svc', serve.url],
  ['Monit', `http://127.0.0.1:${freePort}`],
] as const) {
  const page = await (await browser.newContext()).newPage()
  let [requests, bytes] = [0, 0]
  page.on('requestfinished', async (request) => {
    const { responseBodySize } = await request.sizes()
    requests += 1
    bytes += responseBodySize
  })
  await page.goto(url, { waitUntil: 'networkidle' })
  const paint = await page.evaluate(`performance.getEntriesByName('first-contentful-paint')[0]?.startTime`)
  process.stdout.write(
    `${name}: ${requests} requests, ${(bytes / 1_000).toFixed(0)} kB, first contentful paint ${Number(paint).toFixed(0)} ms\n`,
  )
  await page.screenshot({ path: join(tmpdir(), `compare-${name}.png`), fullPage: true })
  await page.context().close()
  process.stdout.write(await timesOf(name, url, ['/']))
}
await browser.close()
await serve.stop()
monit.kill()
await ten.close()
rmSync(home, { recursive: true, force: true })
process.exit()
