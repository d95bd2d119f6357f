import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { loadConfig } from '../../src/core/config/index.ts'
import { openCore } from '../../src/core/open.ts'
import { startServer } from '../../src/core/server/index.ts'
import { serveDefaults } from '../../src/core/service.ts'
import { blackHole, peer } from '../support/faults.ts'
import { hungUp, until } from '../support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'svc-sharing-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('H8 H9 1,000 callers over HTTP of a monitor that hangs cause one run, which costs its deadline and leaves nothing', async () => {
  await using hole = await peer(blackHole)
  const file = join(folder, 'svc.yaml')
  writeFileSync(
    file,
    `types:\n  App:\n    - {kind: tcp, name: hole, host: 127.0.0.1, port: ${hole.port}, expect: hello, depth: Basic, timeout: 2s}\n`,
    { mode: 0o600 },
  )
  const { service, runtime } = await openCore({
    version: '1.2.3',
    config: await loadConfig({ path: file, env: {}, platform: process.platform, home: folder }),
    store: undefined,
    shared: true,
    details: 'signed-in',
  })
  const server = await startServer({
    service,
    runtime,
    options: serveDefaults,
    host: '127.0.0.1',
    port: 0,
    log: () => {},
    limits: { connectionsPerAddress: 2_000 },
  })
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  const started = performance.now()
  try {
    const answers = await Promise.all(
      Array.from({ length: 1_000 }, async () => {
        const response = await fetch(`${server.url}/healthcheck?ExecutionMode=Standard&ServerType=App`)
        return { status: response.status, body: (await response.json()) as { StatusMessage?: string } }
      }),
    )
    const took = performance.now() - started
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]))
    expect(answers[0]?.body.StatusMessage).toContain('tcp hole')
    expect(hole.seen()).toBe(1)
    expect(took).toBeGreaterThan(1_900)
    await hungUp(hole)
  } finally {
    await server.stop()
    await runtime.close()
  }
  // fetch keeps timers of its own for a moment.
  await until(() => timers() <= before)
})
