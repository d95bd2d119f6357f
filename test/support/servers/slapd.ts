import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { ServerCertificate } from './certs.ts'
import { asServer, findProgram, freePort, type Running, remove, run, serverFolder } from './server.ts'

const find = (names: readonly string[]): string | undefined => names.find((path) => existsSync(path))
const daemon = find(['/usr/sbin/slapd', '/usr/lib/openldap/slapd', '/usr/libexec/slapd', '/usr/local/libexec/slapd'])
const schemas = find(['/etc/ldap/schema', '/etc/openldap/schema', '/usr/local/etc/openldap/schema'])
const modules = find(['/usr/lib/ldap', '/usr/lib/openldap', '/usr/lib64/openldap', '/usr/local/libexec/openldap'])
export const slapdMissing =
  daemon === undefined || schemas === undefined ? 'OpenLDAP (slapd) is not installed' : undefined

export const suffix = 'dc=example,dc=org'
export const admin = { user: `cn=admin,${suffix}`, password: 'the admin of the tests' }
export const probe = { user: `uid=probe,ou=people,${suffix}`, password: 'probe probe probe' }
export const dedicated = { user: `uid=dedicated,ou=people,${suffix}`, password: 'only for being wrong' }

export type Slapd = Running & {
  readonly port: number
  readonly tlsPort: number
  readonly url: string
  readonly ldaps: string
  /** Connections that it holds open at the moment. */
  readonly open: () => number
  /** Whether all of it stands still, some time after `freeze`. */
  readonly stopped: () => boolean
  /** How often its log says so. */
  readonly logged: (what: RegExp) => number
  /** Ends it and removes its data. */
  readonly remove: () => Promise<void>
}

export type SlapdOptions = {
  readonly tls?: ServerCertificate
  /** Lines before the database. */
  readonly global?: readonly string[]
  /** Lines of the database, access rules for instance. */
  readonly database?: readonly string[]
  /** Overlays of the database besides syncprov, by the names of their modules. */
  readonly modules?: readonly string[]
  /** Access rules of the database cn=Monitor, which is there only with them. */
  readonly monitor?: readonly string[]
  /** Entries in addition to the people, in LDIF. */
  readonly entries?: readonly string[]
  /** True for a replica, whose entries come from its provider. */
  readonly isEmpty?: boolean
}

/** A real OpenLDAP server on free ports of 127.0.0.1, with a few people in it. */
export async function startSlapd({
  tls,
  global = [],
  database = [],
  modules: own = [],
  monitor,
  entries = [],
  isEmpty = false,
}: SlapdOptions = {}): Promise<Slapd> {
  const folder = serverFolder('slapd')
  const file = (name: string, text = ''): string => {
    const path = join(folder, name)
    writeFileSync(path, text, { mode: 0o600 })
    if (asServer.uid !== undefined) chownSync(path, asServer.uid, asServer.gid)
    return path
  }
  const data = join(folder, 'data')
  mkdirSync(data)
  if (asServer.uid !== undefined) chownSync(data, asServer.uid, asServer.gid)
  const module = modules && readdirSync(modules).some((name) => name.startsWith('back_mdb'))
  const config = file(
    'slapd.conf',
    [
      ...['core', 'cosine', 'inetorgperson'].map((name) => `include ${schemas}/${name}.schema`),
      ...(module
        ? [`modulepath ${modules}`, ...['back_mdb', 'syncprov', ...own].map((name) => `moduleload ${name}`)]
        : []),
      ...(tls
        ? [`TLSCertificateFile ${file('cert.pem', tls.cert)}`, `TLSCertificateKeyFile ${file('key.pem', tls.key)}`]
        : []),
      ...global,
      'database mdb',
      `suffix "${suffix}"`,
      `rootdn "${admin.user}"`,
      `rootpw "${admin.password}"`,
      `directory ${data}`,
      'overlay syncprov',
      ...database,
      ...(monitor ? ['database monitor', ...monitor] : []),
      '',
    ].join('\n'),
  )
  const person = ({ user, password }: typeof probe): string =>
    `dn: ${user}\nobjectClass: inetOrgPerson\ncn: someone\nsn: one\nuserPassword: ${password}\n`
  const tree = file(
    'tree.ldif',
    [
      `dn: ${suffix}\nobjectClass: dcObject\nobjectClass: organization\ndc: example\no: Example\n`,
      `dn: ou=people,${suffix}\nobjectClass: organizationalUnit\nou: people\n`,
      person(probe),
      person(dedicated),
      ...entries,
    ].join('\n'),
  )
  // -w: writes a contextCSN, as a running server does.
  const added = isEmpty
    ? undefined
    : spawnSync(daemon ?? '', ['-T', 'add', '-w', '-f', config, '-l', tree], {
        ...asServer,
        cwd: '/',
        encoding: 'utf8',
      })
  if (added !== undefined && added.status !== 0) throw new Error(`slapadd: ${added.stderr}`)
  const [port, tlsPort] = [await freePort(), await freePort()]
  const urls = [`ldap://127.0.0.1:${port}/`, ...(tls ? [`ldaps://127.0.0.1:${tlsPort}/`] : [])].join(' ')
  const running = await run(daemon ?? '', ['-f', config, '-h', urls, '-d', 'stats'], /slapd starting/)
  // It says that it starts before it listens.
  for (const one of tls ? [port, tlsPort] : [port]) await listens(one)
  const logged = (what: RegExp): number => running.log().match(new RegExp(what, 'g'))?.length ?? 0
  return {
    ...running,
    port,
    tlsPort,
    url: `ldap://127.0.0.1:${port}`,
    ldaps: `ldaps://127.0.0.1:${tlsPort}`,
    open: () => established([port, tlsPort]),
    stopped: () =>
      readdirSync(`/proc/${running.pid}/task`).every((task) =>
        /\) T /.test(readFileSync(`/proc/${running.pid}/task/${task}/stat`, 'utf8')),
      ),
    logged,
    remove: async () => {
      await running.stop('SIGTERM')
      remove(folder)
    },
  }
}

const [ldapModify, ldapSearch] = [findProgram('ldapmodify'), findProgram('ldapsearch')]
export const ldapClientMissing = ldapModify === undefined ? 'ldap-utils is not installed' : undefined

/** Makes changes in LDIF with a plain client: its exit code, which is the result code of LDAP, and its output. */
export function modify(url: string, who: typeof admin, ldif: string): { readonly code: number; readonly text: string } {
  const args = ['-x', '-H', url, '-D', who.user, '-w', who.password]
  const { status, stdout, stderr } = spawnSync(ldapModify ?? '', args, {
    input: ldif,
    encoding: 'utf8',
    timeout: 60_000,
  })
  return { code: status ?? -1, text: stdout + stderr }
}

/** The same; throws if the server refuses a change. */
export function mustModify(url: string, who: typeof admin, ldif: string): void {
  const { code, text } = modify(url, who, ldif)
  if (code !== 0) throw new Error(`ldapmodify ended with ${code}: ${text}`)
}

/** The LDIF that a plain client reads of one entry; empty if it gets none. */
export function readEntry(url: string, who: typeof admin, entry: string): string {
  const args = ['-x', '-LLL', '-H', url, '-D', who.user, '-w', who.password, '-s', 'base', '-b', entry, '*', '+']
  return spawnSync(ldapSearch ?? '', args, { encoding: 'utf8', timeout: 60_000 }).stdout
}

/** Lines of a replica of another server, which holds the connection and receives each change at once. */
export const replicaOf = (provider: Pick<Slapd, 'url'>): readonly string[] => [
  `syncrepl rid=001 provider=${provider.url} type=refreshAndPersist retry="1 +" searchbase="${suffix}"`,
  `  bindmethod=simple binddn="${admin.user}" credentials="${admin.password}"`,
  `updateref ${provider.url}`,
]

/** Waits until a port accepts connections, at most 10 s. */
async function listens(port: number): Promise<void> {
  const until = performance.now() + 10_000
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    const accepted = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (accepted) return
    if (performance.now() > until) throw new Error(`slapd does not listen on ${port}`)
    await pause(20)
  }
}

/** Connections that are established to ports of this machine, as the kernel counts them. */
function established(ports: readonly number[]): number {
  const hex = ports.map((port) => port.toString(16).toUpperCase().padStart(4, '0'))
  const state = '01'
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[3] === state && hex.includes(fields[1]?.split(':')[1] ?? '')).length
}
