import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import type { ServeOptions } from '../../src/core/protocol/service/service.ts'
import { serveYaml } from './serve-yaml.ts'

/** A server whose svc.yaml has the types Batch, whose monitor passes, and Ftp, whose monitor fails. */
export async function serveMonitors(options: Partial<ServeOptions> = {}, host = '127.0.0.1') {
  const peer = createServer((socket) => socket.end()).listen(0, '127.0.0.1')
  await new Promise((resolve) => peer.once('listening', resolve))
  const { port } = peer.address() as { readonly port: number }
  const yaml = `types:
  Batch: [{kind: tcp, name: <b>queue</b>, host: 127.0.0.1, port: ${port}}]
  Ftp: [{kind: file-age, name: a-name-that-is-much-too-long-for-one-line-of-a-phone, path: ${tmpdir()}/svc-absent}]
`
  const site = await serveYaml(yaml, { options, host })
  const close = async (): Promise<void> => {
    await site.close()
    peer.close()
  }
  return { port: site.port, close }
}
