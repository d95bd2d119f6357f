import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../../src/core/config/index.ts'
import { openCore } from '../../src/core/open.ts'
import type { HealthCheckResponse, ServerType } from '../../src/core/protocol/index.ts'
import { startServer } from '../../src/core/server/index.ts'
import { serveDefaults } from '../../src/core/service.ts'
import { cheapHash } from '../support/suite/cheap-hash.ts'

/** A server with shared runs and this `types:` part of svc.yaml. `health` asks it for a type over HTTP. */
export async function serveTypes(types: string) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-types-'))
  const file = join(folder, 'svc.yaml')
  writeFileSync(file, `types:\n${types}`, { mode: 0o600 })
  const { service, runtime } = await openCore({
    version: '1.2.3',
    config: await loadConfig({ path: file, env: {}, platform: process.platform, home: folder }),
    store: undefined,
    shared: true,
    hashCost: cheapHash,
    details: 'anyone',
  })
  const server = await startServer({
    service,
    runtime,
    options: serveDefaults,
    host: '127.0.0.1',
    port: 0,
    log: () => {},
    limits: { drainDelayMs: 0, lingerMs: 0, quietMs: 0, cancelAfterMs: 1 },
  })
  const health = async (type: ServerType, headers: Readonly<Record<string, string>> = {}) => {
    const url = `${server.url}/healthcheck?ExecutionMode=Advanced&ServerType=${type}`
    const response = await fetch(url, { headers })
    return { age: response.headers.get('age'), body: (await response.json()) as HealthCheckResponse }
  }
  const close = async (): Promise<void> => {
    await server.stop()
    await runtime.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { health, [Symbol.asyncDispose]: close }
}
