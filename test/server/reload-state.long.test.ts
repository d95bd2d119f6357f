import { utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/core/config/index.ts'
import type { Core } from '../../src/core/service/open.ts'
import { testCore } from '../support/engine/core.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'

let folder: string
let core: Core | undefined
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(async () => {
  await core?.runtime.close()
  core = undefined
})

async function configured(yaml: string) {
  writeFileSync(join(folder, 'svc.yaml'), yaml, { mode: 0o600 })
  return await loadConfig({
    env: { SVC_HOME: folder, WRONG: 'wrong', RIGHT: 'right' },
    platform: process.platform,
    home: folder,
  })
}
async function open(yaml: string, store: string | undefined): Promise<Core> {
  core = await testCore({ version: '1', config: await configured(yaml), store, details: 'anyone' })
  return core
}
/** `MonitorName: message` of each result of Batch at Standard. */
async function results({ service }: Core): Promise<readonly string[]> {
  const answer = await service.healthCheck(
    { ExecutionMode: 'Standard', ServerType: 'Batch', SuppressErrorCodes: true },
    { caller: { kind: 'local', account: 'tester' }, correlationId: 'x', signal: new AbortController().signal },
  )
  return (answer.MonitorSummaries ?? []).flatMap(({ MonitorName, Results = [] }) =>
    Results.map(({ StatusMessage }) => `${MonitorName}: ${StatusMessage}`),
  )
}

describe('what a run remembers', () => {
  const old = (): string => {
    const path = join(folder, 'orders')
    writeFileSync(path, 'x')
    utimesSync(path, 1_000, 1_000)
    return `kind: file-age, path: ${path}, for: 15m`
  }
  const batch = (...entries: readonly string[]): string =>
    `types: {Batch: {host: false, monitors: [${entries.map((entry) => `{${entry}}`).join(', ')}]}}\n`
  const age = async (from: Core): Promise<readonly string[]> =>
    (await results(from)).flatMap(
      (line) => /^file-age (.*?): .*exceeded for (the first time|\S+)/.exec(line)?.slice(1) ?? [],
    )

  test('W9 the time of `for` goes on across a reload, also under a new name with `formerly`', async () => {
    const entry = old()
    const { reload } = await open(batch(`${entry}, name: orders`), join(folder, 'store', 'svc.db'))
    expect(await age(core as Core)).toEqual(['orders', 'the first time'])
    await reload?.(async () => await configured(batch(`${entry}, name: orders`, `${entry}, name: other`)))
    const [first, since, second, other] = await age(core as Core)
    expect([first, second, other]).toEqual(['orders', 'other', 'the first time'])
    expect(since).toMatch(/^\d/)
    await reload?.(
      async () =>
        await configured(batch(`${entry}, name: bills, formerly: Batch/file-age/orders`, `${entry}, name: new`)),
    )
    const [bills, sinceBefore, ...rest] = await age(core as Core)
    expect([bills, ...rest]).toEqual(['bills', 'new', 'the first time'])
    expect(sinceBefore).toMatch(/^\d/)
  })

  test('W9 the pause after a refused sign-in outlasts a reload, and ends with another secret', async () => {
    const attempts: string[] = []
    await using server = await httpPeer((request, response) => {
      const [, packed = ''] = (request.headers.authorization ?? '').split(' ')
      const password = Buffer.from(packed, 'base64').toString().split(':')[1] ?? ''
      if (password !== '') attempts.push(password)
      response.writeHead(password === 'right' ? 200 : 401, { 'content-type': 'text/plain' }).end('page')
    })
    const shop = (name: string, variable: string): string =>
      `kind: http, name: ${name}, url: "${server.origin}/", username: svc, password: {env: ${variable}}`
    const { reload } = await open(batch(shop('shop', 'WRONG')), undefined)
    expect((await results(core as Core)).join()).toContain('401')
    expect(attempts).toEqual(['wrong'])
    await reload?.(async () => await configured(batch(`${shop('shop', 'WRONG')}, retries: 1`, shop('cart', 'WRONG'))))
    const paused = (await results(core as Core)).join('\n')
    expect(paused).toMatch(/^http shop: refused: .* ago\); next attempt in /m)
    expect(paused).toMatch(/^http cart: not checked: the sign-in of http shop was refused/m)
    expect(attempts).toEqual(['wrong'])
    await reload?.(async () => await configured(batch(shop('shop', 'RIGHT'))))
    expect((await results(core as Core)).join()).toContain('200')
    expect(new Set(attempts.slice(1))).toEqual(new Set(['right']))
  })
})
