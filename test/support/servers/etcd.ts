import { join } from 'node:path'
import { findProgram, freePort, type Running, remove, run, serverFolder } from './server.ts'

const program = findProgram('etcd')
export const etcdMissing = program === undefined ? 'etcd is not installed' : undefined

export type Etcd = Running & { readonly port: number; readonly remove: () => Promise<void> }

/** A real etcd of one member on free ports of 127.0.0.1. */
export async function startEtcd(): Promise<Etcd> {
  const folder = serverFolder('etcd')
  const port = await freePort()
  const [clients, peers] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${await freePort()}`]
  const options = {
    'data-dir': join(folder, 'data'),
    'listen-client-urls': clients,
    'advertise-client-urls': clients,
    'listen-peer-urls': peers,
    'initial-advertise-peer-urls': peers,
    'initial-cluster': `default=${peers}`,
  }
  const args = Object.entries(options).map(([name, value]) => `--${name}=${value}`)
  const running = await run(program ?? '', args, /serving insecure client requests/)
  return {
    ...running,
    port,
    remove: async () => {
      await running.stop('SIGTERM')
      remove(folder)
    },
  }
}
