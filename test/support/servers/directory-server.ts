import { chownSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../suite/until.ts'
import { asServer, findProgram, freePort, type Running, remove, run, serverFolder } from './server.ts'
import { ldapClientMissing, mustModify, probe, readEntry, suffix } from './slapd.ts'

const daemon = findProgram('ns-slapd')
/** The level of its log by default, which then also goes to standard error. */
const defaultLog = '266354688'
const template = '/usr/share/dirsrv/data/template-dse.ldif'
export const directoryServerMissing =
  daemon === undefined || !existsSync(template)
    ? '389 Directory Server (389-ds-base) is not installed'
    : ldapClientMissing

export const manager = { user: 'cn=Directory Manager', password: 'the manager of the tests' }
const replication = { user: 'cn=replication manager,cn=config', password: 'the replication of the tests' }
/** The entry with the replica of the suffix. */
const replica = `cn=replica,cn="${suffix}",cn=mapping tree,cn=config`

export type DirectoryServer = Running & {
  readonly port: number
  readonly url: string
  readonly folder: string
  /** Ends it and removes its data. */
  readonly remove: () => Promise<void>
}

/** A real 389 Directory Server on a free port of 127.0.0.1 with an empty database, without systemd. `id`: of its replica. */
export async function startDirectoryServer(id: number): Promise<DirectoryServer> {
  const folder = serverFolder('dirsrv')
  const make = (name: string): string => {
    const path = join(folder, name)
    mkdirSync(path, { recursive: true })
    if (asServer.uid !== undefined) chownSync(path, asServer.uid, asServer.gid)
    return path
  }
  const config = make('config')
  const port = await freePort()
  const places: Readonly<Record<string, string>> = {
    schema_dir: make('config/schema'),
    lock_dir: make('lock'),
    tmp_dir: make('tmp'),
    cert_dir: config,
    ldif_dir: make('ldif'),
    bak_dir: make('bak'),
    run_dir: make('run'),
    inst_dir: make('inst'),
    log_dir: make('log'),
    db_dir: make('db'),
    config_dir: config,
    fqdn: 'localhost',
    ds_port: String(port),
    ds_user: asServer.uid === undefined ? '' : 'nobody',
    ds_suffix: suffix,
    rootdn: manager.user,
    ds_passwd: manager.password,
    ldapi_enabled: 'off',
    ldapi: join(folder, 'socket'),
    ldapi_autobind: 'off',
  }
  const settings = readFileSync(template, 'utf8')
    .replaceAll(/%([a-z_]+)%/g, (_, name: string) => places[name] ?? '')
    .replace('\nnsslapd-rootpw:', '\nnsslapd-rootpwstoragescheme: CLEAR\nnsslapd-rootpw:')
  const dse = join(config, 'dse.ldif')
  writeFileSync(dse, settings, { mode: 0o600 })
  cpSync('/etc/dirsrv/config', config, { recursive: true })
  cpSync('/etc/dirsrv/schema', places.schema_dir ?? '', { recursive: true })
  for (const path of [dse, join(config, 'slapd-collations.conf'), join(config, 'certmap.conf')]) {
    if (asServer.uid !== undefined && existsSync(path)) chownSync(path, asServer.uid, asServer.gid)
  }
  const args = ['-D', config, '-i', join(folder, 'run', 'pid'), '-d', defaultLog]
  const running = await run(daemon ?? '', args, /slapd started\./)
  const url = `ldap://127.0.0.1:${port}`
  mustModify(url, manager, configuration(id))
  return {
    ...running,
    port,
    url,
    folder,
    remove: async () => {
      running.thaw()
      // It takes longer than the tests wait, and its data is of no use any more.
      await running.stop('SIGKILL')
      remove(folder)
    },
  }
}

/** The database, and its replica, which accepts changes of clients and of the other servers. */
const configuration = (id: number): string => `dn: cn=userRoot,cn=ldbm database,cn=plugins,cn=config
changetype: add
objectClass: extensibleObject
objectClass: nsBackendInstance
cn: userRoot
nsslapd-suffix: ${suffix}

dn: cn="${suffix}",cn=mapping tree,cn=config
changetype: add
objectClass: extensibleObject
objectClass: nsMappingTree
cn: ${suffix}
nsslapd-state: backend
nsslapd-backend: userRoot

dn: ${replication.user}
changetype: add
objectClass: person
cn: replication manager
sn: manager
userPassword: ${replication.password}

dn: ${replica}
changetype: add
objectClass: nsds5Replica
cn: replica
nsds5ReplicaRoot: ${suffix}
nsds5ReplicaType: 3
nsds5flags: 1
nsds5ReplicaId: ${id}
nsds5ReplicaBindDN: ${replication.user}
`

/** The entries of the suffix. `more`: further entries. */
export const addTree = ({ url }: DirectoryServer, more: readonly string[] = []): void =>
  mustModify(
    url,
    manager,
    [
      `dn: ${suffix}\nchangetype: add\nobjectClass: domain\ndc: example\n`,
      `dn: ou=people,${suffix}\nchangetype: add\nobjectClass: organizationalUnit\nou: people\n`,
      `dn: ${probe.user}\nchangetype: add\nobjectClass: inetOrgPerson\ncn: probe\nsn: probe\nuserPassword: ${probe.password}\n`,
      ...more,
    ].join('\n'),
  )

export const agreementOf = (name: string): string => `cn=${name},${replica}`

/** Sends the changes of a server to another one from now on. */
export const addAgreement = ({ url }: DirectoryServer, name: string, port: number): void =>
  mustModify(
    url,
    manager,
    `dn: ${agreementOf(name)}
changetype: add
objectClass: nsds5replicationagreement
cn: ${name}
nsds5replicahost: 127.0.0.1
nsds5replicaport: ${port}
nsds5replicabindmethod: SIMPLE
nsds5replicatransportinfo: LDAP
nsds5replicabinddn: ${replication.user}
nsds5replicacredentials: ${replication.password}
nsds5replicaroot: ${suffix}
nsds5replicatimeout: 5
`,
  )

/**
 * Gives a second server the entries and the state of the first one, by a file: the protocol for that may wait for minutes
 * after an early attempt.
 */
export async function initialize(from: DirectoryServer, consumer: DirectoryServer): Promise<void> {
  const file = join(from.folder, 'ldif', 'all.ldif')
  await task(from, 'export', `nsFilename: ${file}\nnsExportReplica: true`)
  await task(consumer, 'import', `nsFilename: ${file}`)
}

/** Runs a task of the server, and waits for its end. */
async function task({ url }: DirectoryServer, kind: 'export' | 'import', lines: string): Promise<void> {
  const entry = `cn=tests,cn=${kind},cn=tasks,cn=config`
  mustModify(
    url,
    manager,
    `dn: ${entry}\nchangetype: add\nobjectClass: extensibleObject\ncn: tests\nnsInstance: userRoot\n${lines}\n`,
  )
  await until(() => /^nsTaskExitCode: 0$/im.test(readEntry(url, manager, entry)), 60_000, 200)
}

/** Adds an access rule to an entry. */
export const allow = ({ url }: DirectoryServer, entry: string, aci: string): void =>
  mustModify(url, manager, `dn: ${entry}\nchangetype: modify\nadd: aci\n${aci}\n`)
