import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../suite/until.ts'
import { descendantsOf, killAll, untilStopped } from './process-tree.ts'
import { findProgram, freePort, remove, serverFolder } from './server.ts'

/** Where `.ci/keycloak` unpacks it. */
const home = join(import.meta.dirname, '../../../node_modules/.cache/keycloak')
const script = join(home, 'bin/kc.sh')
export const keycloakMissing = !existsSync(script)
  ? 'Keycloak is not unpacked: .ci/keycloak fetches it from Maven Central'
  : findProgram('java') === undefined
    ? 'Java is not installed'
    : undefined

/** E.g. `26.7.3`; empty where it is missing. */
export const keycloakVersion = (): string =>
  keycloakMissing === undefined
    ? (/-(\d+\.\d+\.\d+)\.jar/.exec(
        readdirSync(join(home, 'lib/lib/main')).find((name) => name.startsWith('org.keycloak.keycloak-core-')) ?? '',
      )?.[1] ?? '')
    : ''

const admin = { user: 'admin', password: 'the admin of the tests' }
export const keycloakClient = { clientId: 'svc-probe', clientSecret: 'the secret of the probe' }
/** A public client, as svc login is. */
export const keycloakPublicClient = 'svc'
export const keycloakAccount = { user: 'probe', password: 'the account of the probe' }

export type Keycloak = {
  readonly port: number
  /** The issuer of a realm: `shop`, or `old`, whose only key is three years old. */
  readonly issuer: (realm: string) => string
  /** Changes the settings of the realm `shop`, e.g. `{enabled: false}`. */
  readonly change: (settings: object) => Promise<void>
  readonly freeze: () => void
  readonly thaw: () => void
  readonly stop: () => Promise<void>
  readonly remove: () => Promise<void>
}

/** A real Keycloak on a free port of 127.0.0.1, with two realms, in clear text, all of it in memory. */
export async function startKeycloak(): Promise<Keycloak> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const folder = serverFolder('keycloak')
  const child = spawn(
    script,
    [
      ...[
        'start',
        '--optimized',
        '--http-enabled=true',
        '--hostname-strict=false',
        '--cache=local',
        `--http-port=${port}`,
      ],
      ...['--http-host=127.0.0.1'],
    ],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        KC_BOOTSTRAP_ADMIN_USERNAME: admin.user,
        KC_BOOTSTRAP_ADMIN_PASSWORD: admin.password,
        JAVA_OPTS_KC_HEAP: '-Xms64m -Xmx512m',
        // It starts sooner without the optimizing compiler.
        JAVA_OPTS_APPEND: '-XX:TieredStopAtLevel=1',
      },
    },
  )
  let log = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (log += String(chunk)))
  const { pid = 0 } = child
  const all = (): readonly number[] => [...descendantsOf(pid), pid]
  const kill = (): void => killAll(all())
  process.once('exit', kill)
  const gone = once(child, 'exit')
  const isGone = (): boolean => child.exitCode !== null || child.signalCode !== null
  const signal = (name: NodeJS.Signals): void => {
    for (const one of all()) process.kill(one, name)
  }
  const stop = async (): Promise<void> => {
    process.off('exit', kill)
    if (isGone()) return
    kill()
    await gone
    // The server is a child of the script.
    await until(() =>
      fetch(url).then(
        () => false,
        (error: Error) => (error.cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED',
      ),
    )
  }
  for (let round = 0; !log.includes('Listening on'); round += 1) {
    if (isGone() || round > 1_600) {
      await stop()
      throw new Error(`Keycloak did not start: ${log.slice(-2_000)}`)
    }
    await pause(100)
  }
  const administer = async (method: 'POST' | 'PUT', path: string, body: object): Promise<void> => {
    const form = { grant_type: 'password', client_id: 'admin-cli', username: admin.user, password: admin.password }
    const signedIn = await fetch(`${url}/realms/master/protocol/openid-connect/token`, {
      method: 'POST',
      body: new URLSearchParams(form),
    })
    const { access_token: token } = (await signedIn.json()) as { readonly access_token: string }
    const answer = await fetch(`${url}/admin/realms${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (!answer.ok) throw new Error(`Keycloak: ${method} ${path}: ${answer.status} ${await answer.text()}`)
  }
  const client = {
    clientId: keycloakClient.clientId,
    secret: keycloakClient.clientSecret,
    publicClient: false,
    serviceAccountsEnabled: true,
    directAccessGrantsEnabled: true,
    redirectUris: [],
  }
  const publicClient = {
    clientId: keycloakPublicClient,
    publicClient: true,
    standardFlowEnabled: true,
    redirectUris: ['http://127.0.0.1/*'],
    attributes: { 'pkce.code.challenge.method': 'S256', 'oauth2.device.authorization.grant.enabled': 'true' },
  }
  // Keycloak calls a token inactive unless the client that asks is in its audience.
  const audience = {
    name: 'audience',
    protocol: 'openid-connect',
    protocolMapper: 'oidc-audience-mapper',
    config: { 'included.client.audience': keycloakClient.clientId, 'access.token.claim': 'true' },
  }
  const person = {
    username: keycloakAccount.user,
    enabled: true,
    email: 'probe@example.org',
    emailVerified: true,
    firstName: 'Probe',
    lastName: 'of svc',
    credentials: [{ type: 'password', value: keycloakAccount.password, temporary: false }],
  }
  try {
    await administer('POST', '', {
      realm: 'shop',
      enabled: true,
      clients: [{ ...client, protocolMappers: [audience] }, publicClient],
      users: [person],
    })
    const key = { name: 'old', providerId: 'rsa', config: oldKey(folder) }
    const components = { 'org.keycloak.keys.KeyProvider': [key] }
    await administer('POST', '', { realm: 'old', enabled: true, clients: [client], components })
  } catch (error) {
    await stop()
    throw error
  }
  return {
    port,
    issuer: (realm) => `${url}/realms/${realm}`,
    change: (settings) => administer('PUT', '/shop', settings),
    freeze: () => {
      signal('SIGSTOP')
      untilStopped(all())
    },
    thaw: () => signal('SIGCONT'),
    stop,
    remove: async () => {
      await stop()
      remove(folder)
    },
  }
}

/** The configuration of a key whose certificate is three years old. */
function oldKey(folder: string): Readonly<Record<string, readonly string[]>> {
  const openssl = (...args: readonly string[]): void => {
    execFileSync('openssl', args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  }
  const stamp = (days: number): string =>
    `${new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 19).replaceAll(/\D/g, '')}Z`
  writeFileSync(join(folder, 'index.txt'), '')
  writeFileSync(
    join(folder, 'ca.cnf'),
    '[ca]\ndefault_ca=all\n[all]\ndatabase=index.txt\nrand_serial=yes\nnew_certs_dir=.\ndefault_md=sha256\npolicy=any\n' +
      '[any]\ncommonName=supplied\n[req]\ndistinguished_name=dn\n[dn]\n',
  )
  openssl('genrsa', '-traditional', '-out', 'old.key', '2048')
  openssl('req', '-new', '-config', 'ca.cnf', '-key', 'old.key', '-subj', '/CN=old', '-out', 'old.csr')
  openssl(
    ...([
      'ca',
      '-batch',
      '-notext',
      '-config',
      'ca.cnf',
      '-selfsign',
      '-keyfile',
      'old.key',
      '-in',
      'old.csr',
    ] as const),
    ...(['-startdate', stamp(-3 * 365), '-enddate', stamp(7 * 365), '-out', 'old.pem'] as const),
  )
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8')
  return {
    privateKey: [read('old.key')],
    certificate: [read('old.pem')],
    active: ['true'],
    enabled: ['true'],
    priority: ['100'],
    algorithm: ['RS256'],
  }
}
