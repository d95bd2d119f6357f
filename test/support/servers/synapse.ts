import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { daemon } from '../suite/daemon.ts'
import { freePort, remove, serverFolder } from './server.ts'

const python = join(import.meta.dirname, '../../../node_modules/.cache/messages/synapse/bin/python')
export const synapseMissing = existsSync(python)
  ? undefined
  : 'Synapse is not fetched: it comes from a package index for Python, by .ci/messages'

/** The messages that a user may send at once, before the server answers 429. */
export const burst = 4

export type MatrixUser = {
  readonly token: string
  /** Calls the client-server API as this user. Rejects unless the answer is 2xx. */
  readonly call: <T>(method: string, path: string, json?: object) => Promise<T>
}

export type Synapse = {
  readonly origin: string
  /** Registers a user, whose name others see as a display name. */
  readonly user: (name: string) => Promise<MatrixUser>
  readonly remove: () => Promise<void>
}

/** A real Matrix server (Synapse) on a free port of 127.0.0.1, without federation. */
export async function startSynapse(): Promise<Synapse> {
  const folder = serverFolder('synapse')
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const config = join(folder, 'homeserver.yaml')
  const limit = { per_second: 1_000, burst_count: 1_000 }
  const settings = {
    server_name: 'svc.test',
    listeners: [{ port, bind_addresses: ['127.0.0.1'], type: 'http', tls: false, resources: [{ names: ['client'] }] }],
    database: { name: 'sqlite3', args: { database: ':memory:' } },
    media_store_path: join(folder, 'media'),
    signing_key_path: join(folder, 'signing.key'),
    pid_file: join(folder, 'pid'),
    trusted_key_servers: [],
    report_stats: false,
    macaroon_secret_key: 'of a test',
    enable_registration: true,
    enable_registration_without_verification: true,
    rc_registration: limit,
    // Otherwise a first synchronization is repeated from memory.
    caches: { sync_response_cache_duration: 0 },
    rc_message: { per_second: 0.1, burst_count: burst },
  }
  // JSON is YAML.
  writeFileSync(config, JSON.stringify(settings))
  const options = { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] as ['ignore', 'pipe', 'pipe'] }
  const generate = ['-m', 'synapse.app.homeserver', '-c', config]
  const keys = await daemon([python, ...generate, '--generate-keys'], { ...options, ready: () => true })
  if ((await keys.ended) !== 0) throw new Error(keys.log())
  const isReady = async (): Promise<boolean> => {
    try {
      return (await fetch(`${origin}/_matrix/client/versions`)).ok
    } catch {
      return false
    }
  }
  const server = await daemon([python, ...generate], {
    ...{ ...options, ready: isReady, name: 'synapse', maxMs: 120_000, remove: () => remove(folder) },
  })
  const caller =
    (token?: string): MatrixUser['call'] =>
    async <T>(method: string, path: string, json?: object) => {
      const response = await fetch(`${origin}/_matrix/client/v3${path}`, {
        method,
        headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
        ...(json === undefined ? {} : { body: JSON.stringify(json) }),
      })
      const text = await response.text()
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
      return JSON.parse(text) as T
    }
  return {
    origin,
    user: async (name) => {
      const asks = { username: name, password: `${name}-Zq8nT3`, auth: { type: 'm.login.dummy' } }
      const { access_token: token } = await caller()<{ readonly access_token: string }>('POST', '/register', asks)
      return { token, call: caller(token) }
    },
    remove: async () => void (await server.stop()),
  }
}
