import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HashCost } from '../../src/core/accounts/auth/index.ts'
import type { AuthConfig, Config } from '../../src/core/config/index.ts'
import type { AuthenticateResponse } from '../../src/core/protocol/index.ts'
import { type AdminActor, type ServeOptions, serveDefaults } from '../../src/core/protocol/service/service.ts'
import type { LogEntry, RunningServer } from '../../src/core/server/index.ts'
import { openCore } from '../../src/core/service/open.ts'
import { testServer } from '../support/engine/core.ts'
import { adminOver, type TestAdmin } from '../support/store/admin.ts'
import { cheapHash } from '../support/suite/cheap-hash.ts'
import { ask, type Got } from './site.ts'

export const by: AdminActor = { who: 'local:tester', correlationId: 'test' }
export const password = 'violet-harbour-42'

/** A server with a store of its own: Ann is Admin, Ned holds no role. */
export type Accounts = {
  readonly port: number
  readonly server: RunningServer
  readonly admin: TestAdmin
  /** The file. */
  readonly store: string
  readonly log: LogEntry[]
  readonly post: (path: string, body: unknown, headers?: Readonly<Record<string, string>>) => Promise<Got>
  readonly signIn: (more?: object, headers?: Readonly<Record<string, string>>) => Promise<SignedIn>
  readonly close: () => Promise<void>
}
type Secrets = { readonly SessionId: string; readonly BearerToken: string; readonly RefreshToken: string }
export type SignedIn = Omit<AuthenticateResponse, keyof Secrets> &
  Secrets & {
    /** As a client would send them back. */
    readonly cookie: string
  }

/**
 * `host`: the address to listen on; `post` and `signIn` use it too. `types`: what it monitors. `cost`: what a hash of a
 * password costs. `config`: more of svc.yaml.
 */
export async function startAccounts(
  options: Partial<ServeOptions> = {},
  host = '127.0.0.1',
  auth?: AuthConfig,
  types: Config['types'] = {},
  cost: HashCost = cheapHash,
  config: Partial<Config> = {},
): Promise<Accounts> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-accounts-'))
  const store = join(folder, 'store', 'svc.db')
  const log: LogEntry[] = []
  const { service, runtime } = await openCore({
    version: '9.8.7',
    config: {
      origin: undefined,
      types,
      serve: { ...serveDefaults },
      warnings: [],
      ...(auth ? { auth } : {}),
      ...config,
    },
    store,
    shared: true,
    hashCost: cost,
    details: 'signed-in',
  })
  const admin = adminOver(service)
  await admin.users.add({ userName: 'Ann', displayName: 'Ann Example', password, roles: ['Admin', 'Editor'] }, by)
  await admin.users.add({ userName: 'Ned', email: 'ned@example.com', password }, by)
  const server = await testServer({
    service,
    runtime,
    options: { ...serveDefaults, ...options },
    host,
    log: (entry) => log.push(entry),
    limits: { lingerMs: 200, drainDelayMs: 0 },
  })
  const { port } = server
  const post: Accounts['post'] = (path, body, headers = {}) =>
    ask(port, path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
      host,
    })
  return {
    port,
    server,
    admin,
    store,
    log,
    post,
    signIn: async (more = {}, headers = {}) => {
      const got = await post('/auth/credentials', { UserName: 'Ann', Password: password, ...more }, headers)
      if (got.status !== 200) throw new Error(`The sign-in was answered ${got.status}: ${got.text}`)
      return { ...(got.json as unknown as SignedIn), cookie: cookiesOf(got) }
    },
    close: async () => {
      await server.stop()
      await runtime.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const cookiesOf = ({ headers }: Got): string =>
  (headers['set-cookie'] ?? []).map((line) => line.replace(/;.*/s, '')).join('; ')

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
