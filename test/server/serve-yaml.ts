import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../../src/core/config/index.ts'
import { openCore } from '../../src/core/open.ts'
import { startServer } from '../../src/core/server/index.ts'
import { type ServeOptions, serveDefaults } from '../../src/core/service.ts'
import { cheapHash } from '../support/suite/cheap-hash.ts'

type Options = {
  readonly details?: ServeOptions['details']
  readonly options?: Partial<ServeOptions>
  readonly host?: string
  readonly limits?: Parameters<typeof startServer>[0]['limits']
}

/** A server with shared runs, without a store, whose svc.yaml has this text. It stops without a delay. */
export async function serveYaml(
  yaml: string,
  { details = 'anyone', options = {}, host = '127.0.0.1', limits = { lingerMs: 0, quietMs: 0 } }: Options = {},
) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-yaml-'))
  const path = join(folder, 'svc.yaml')
  writeFileSync(path, yaml, { mode: 0o600 })
  const { service, runtime } = await openCore({
    version: '1.2.3',
    config: await loadConfig({ path, env: {}, platform: process.platform, home: folder }),
    store: undefined,
    shared: true,
    hashCost: cheapHash,
    details,
  })
  const server = await startServer({
    service,
    runtime,
    options: { ...serveDefaults, ...options },
    host,
    port: 0,
    log: () => {},
    limits: { drainDelayMs: 0, ...limits },
  })
  const close = async (): Promise<void> => {
    await server.stop()
    await runtime.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { server, runtime, url: server.url, port: server.port, close, [Symbol.asyncDispose]: close }
}
