import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../../src/core/config/index.ts'
import { openCore } from '../../src/core/open.ts'
import { startServer } from '../../src/core/server/index.ts'
import { type ServeOptions, serveDefaults } from '../../src/core/service.ts'
import { cheapHash } from '../support/suite/cheap-hash.ts'

/** A server without a store, whose svc.yaml has the types Batch, whose monitor passes, and Ftp, whose monitor fails. */
export async function serveMonitors(options: Partial<ServeOptions> = {}, host = '127.0.0.1') {
  const peer = createServer((socket) => socket.end()).listen(0, '127.0.0.1')
  await new Promise((resolve) => peer.once('listening', resolve))
  const { port } = peer.address() as { readonly port: number }
  const folder = mkdtempSync(join(tmpdir(), 'svc-monitors-'))
  const yaml = `types:
  Batch: [{kind: tcp, name: <b>queue</b>, host: 127.0.0.1, port: ${port}}]
  Ftp: [{kind: file-age, name: a-name-that-is-much-too-long-for-one-line-of-a-phone, path: ${folder}/absent}]
`
  writeFileSync(join(folder, 'svc.yaml'), yaml, { mode: 0o600 })
  const { service, runtime } = await openCore({
    version: '1.2.3',
    config: await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder }),
    store: undefined,
    shared: true,
    hashCost: cheapHash,
    details: 'anyone',
  })
  const server = await startServer({
    service,
    runtime,
    options: { ...serveDefaults, ...options },
    host,
    port: 0,
    tls: undefined,
    log: () => {},
    limits: { drainDelayMs: 0, lingerMs: 0, quietMs: 0 },
  })
  const close = async (): Promise<void> => {
    await server.stop()
    await runtime.close()
    peer.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { port: server.port, close }
}
