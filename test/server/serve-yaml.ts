import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../../src/core/config/index.ts'
import { type ServeOptions, serveDefaults } from '../../src/core/protocol/service/service.ts'
import type { startServer } from '../../src/core/server/index.ts'
import { testCore, testServer } from '../support/engine/core.ts'

type Options = {
  readonly details?: ServeOptions['details']
  readonly options?: Partial<ServeOptions>
  readonly host?: string
  readonly withStore?: boolean
  readonly requireConfig?: boolean
  readonly limits?: Parameters<typeof startServer>[0]['limits']
}

const stopsAtOnce = { lingerMs: 0, quietMs: 0 } as const

/**
 * A server of this process with shared runs, whose svc.yaml has this text. Undefined: it has none. It stops without a
 * delay.
 */
export async function serveYaml(
  yaml: string | undefined,
  {
    details = 'anyone',
    options = {},
    host = '127.0.0.1',
    limits = stopsAtOnce,
    withStore = false,
    requireConfig = false,
  }: Options = {},
) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-yaml-'))
  if (yaml !== undefined) writeFileSync(join(folder, 'svc.yaml'), yaml, { mode: 0o600 })
  const { service, runtime } = await testCore({
    config: await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder }),
    store: withStore ? join(folder, 'store', 'svc.db') : undefined,
    details,
    requireConfig,
  })
  const server = await testServer({
    service,
    runtime,
    options: { ...serveDefaults, ...options },
    host,
    limits: { drainDelayMs: 0, ...limits },
  })
  const close = async (): Promise<void> => {
    await server.stop()
    await runtime.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { server, runtime, url: server.url, port: server.port, close, [Symbol.asyncDispose]: close }
}
