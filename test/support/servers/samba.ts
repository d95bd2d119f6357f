import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { ServerCertificate } from './certs.ts'
import { descendantsOf, killAll, untilStopped } from './process-tree.ts'
import { findProgram, remove } from './server.ts'

const tool = findProgram('samba-tool')
const unshare = findProgram('unshare') ?? ''
const python = '/usr/bin/python3'
export const sambaMissing =
  tool === undefined || findProgram('samba') === undefined
    ? 'Samba with its domain controller is not installed'
    : process.platform !== 'linux' || process.getuid?.() !== 0
      ? 'a domain controller needs root on Linux, for its ports and its names'
      : undefined

export const domainBase = 'DC=example,DC=test'
const realm = 'EXAMPLE.TEST'
export const administrator = { user: 'administrator@example.test', password: 'Adm1n-of-the-tests' }
/** Arguments of `tool` that plant a fault of the account \`reader\`. */
export const accountFaults = {
  /** Its password expires in so many days, as those of all accounts. */
  expiresIn: (days: number) => ['domain', 'passwordsettings', 'set', `--max-pwd-age=${days}`, '--min-pwd-age=0'],
  disabled: ['user', 'disable', 'reader'],
  mustChange: ['user', 'setpassword', 'reader', '--newpassword=An-0ther-of-tests', '--must-change-at-next-login'],
  /** Three wrong passwords lock it. */
  locksAfterThree: ['domain', 'passwordsettings', 'set', '--account-lockout-threshold=3'],
  neverLocks: ['domain', 'passwordsettings', 'set', '--account-lockout-threshold=0'],
} as const

/** An account without privileges. */
export const reader = { user: 'reader@example.test', password: 'Read-0nly-of-tests' }

/** An account that only a check with wrong passwords uses. */
export const dedicated = { user: 'dedicated@example.test', password: 'Ded1cated-of-tests' }

export type DomainController = {
  readonly url: string
  /** It listens there if it was started with a certificate. */
  readonly ldaps: string
  readonly address: string
}
export type Domain = {
  readonly first: DomainController
  /** The second one replicates with the first; it is there if the domain was started with two. */
  readonly second: DomainController
  /** Runs samba-tool on the first controller. */
  readonly tool: (...args: readonly string[]) => void
  /** Dates the password of `reader` so many days back. */
  readonly agePassword: (days: number) => void
  /** Stops the processes of the first controller; the kernel still accepts connections. */
  readonly freezeFirst: () => void
  readonly thawFirst: () => void
  /** Ends the first controller, so that the second one loses its partner. */
  readonly stopFirst: () => void
  readonly remove: () => Promise<void>
}

export type DomainOptions = {
  readonly controllers?: 1 | 2
  /** The certificates of the controllers, for LDAPS. */
  readonly certificates?: readonly ServerCertificate[]
}

/**
 * A real domain of Active Directory (Samba), each controller at an address of its own on loopback, because Samba's
 * ports are fixed. The names are known to its own processes only.
 */
export async function startDomain({ controllers = 1, certificates = [] }: DomainOptions = {}): Promise<Domain> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-samba-'))
  const network = `127.77.${(process.pid % 250) + 1}`
  const [first, second] = [`${network}.1`, `${network}.2`]
  const lines = script(folder, first, second, controllers, certificates.length)
  writeFileSync(join(folder, 'guid.py'), guidOf)
  writeFileSync(join(folder, 'password-date.py'), dateOfPassword)
  for (const [index, { key, cert }] of certificates.entries()) {
    // Samba refuses a key that others may read.
    writeFileSync(join(folder, `dc${index + 1}.key`), key, { mode: 0o600 })
    writeFileSync(join(folder, `dc${index + 1}.pem`), cert)
  }
  const child = spawn(unshare, ['-m', 'bash', '-c', lines], { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  let log = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (log += String(chunk)))
  const { pid = 0 } = child
  const kill = (): void => killAll([...descendantsOf(pid), pid])
  process.once('exit', kill)
  const gone = once(child, 'exit')
  const isGone = (): boolean => child.exitCode !== null || child.signalCode !== null
  for (let round = 0; !log.includes('the domain is there'); round += 1) {
    if (isGone() || round > 1_200) {
      kill()
      throw new Error(`the domain did not start: ${log.slice(-4_000)}`)
    }
    await pause(100)
  }
  const ofFirst = (): readonly number[] => {
    const main = Number(readFileSync(join(folder, 'dc1.pid'), 'utf8'))
    return [...descendantsOf(main), main]
  }
  const signalFirst = (signal: NodeJS.Signals): void => {
    for (const one of ofFirst()) process.kill(one, signal)
  }
  const controller = (address: string): DomainController => ({
    url: `ldap://${address}`,
    ldaps: `ldaps://${address}`,
    address: `${address}:389`,
  })
  for (const address of controllers === 2 ? [first, second] : [first]) await listens(address)
  return {
    first: controller(first),
    second: controller(second),
    tool: (...args) => {
      const { status, stderr, stdout } = spawnSync(tool ?? '', [...args, `--configfile=${folder}/dc1/etc/smb.conf`], {
        encoding: 'utf8',
      })
      if (status !== 0) throw new Error(`samba-tool ${args.join(' ')}: ${stderr}${stdout}`)
    },
    agePassword: (days) => {
      const args = ['password-date.py', 'dc1', String(days)]
      const { status, stderr } = spawnSync(python, args, { cwd: folder, encoding: 'utf8' })
      if (status !== 0) throw new Error(`the date of the password was not set: ${stderr}`)
    },
    freezeFirst: () => {
      signalFirst('SIGSTOP')
      untilStopped(ofFirst())
    },
    thawFirst: () => signalFirst('SIGCONT'),
    stopFirst: () => killAll(ofFirst()),
    remove: async () => {
      process.off('exit', kill)
      kill()
      if (!isGone()) await gone
      remove(folder)
    },
  }
}

const guidOf = `import sys
from samba.samdb import SamDB
from samba.param import LoadParm
from samba.auth import system_session
lp = LoadParm(sys.argv[1] + '/etc/smb.conf')
print(SamDB(sys.argv[1] + '/private/sam.ldb', lp=lp, session_info=system_session()).get_ntds_GUID())
`

/** The control lets the date of a password be written, which otherwise only a change of the password sets. */
const dateOfPassword = `import sys
import time
import ldb
from samba.samdb import SamDB
from samba.param import LoadParm
from samba.auth import system_session
lp = LoadParm(sys.argv[1] + '/etc/smb.conf')
sam = SamDB(sys.argv[1] + '/private/sam.ldb', lp=lp, session_info=system_session())
change = ldb.Message(ldb.Dn(sam, 'CN=reader,CN=Users,' + str(sam.domain_dn())))
since = int((time.time() - 86400 * int(sys.argv[2]) + 11644473600) * 10000000)
change['pwdLastSet'] = ldb.MessageElement(str(since), ldb.FLAG_MOD_REPLACE, 'pwdLastSet')
sam.modify(change, ['local_oid:1.3.6.1.4.1.7165.4.3.20:0'])
`

/** Shell lines that make the domain in a namespace where its names resolve, and run its controllers. */
const script = (folder: string, first: string, second: string, controllers: number, certificates: number): string => `
set -e
cd ${folder}
mount --make-rprivate /
cat > krb5.conf <<END
[libdefaults]
  default_realm = ${realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  rdns = false
[realms]
  ${realm} = {
    kdc = ${first}
  }
END
export KRB5_CONFIG=${folder}/krb5.conf
cat > hosts <<END
127.0.0.1 localhost
${first} dc1.example.test dc1 example.test
${second} dc2.example.test dc2
END
mount --bind hosts /etc/hosts
configure() {
  sed -i -e '/^\\s*interfaces =/d' -e '/^\\s*log file =/d' -e '/^\\s*server services =/d' $1/etc/smb.conf
  sed -i -e "s|^\\[global\\]|[global]\\n\\tinterfaces = $2/8\\n\\tbind interfaces only = yes\\n\\tlog file = ${folder}/$1/log\\n\\tpid directory = ${folder}/$1\\n\\tncalrpc dir = ${folder}/$1/ncalrpc\\n\\tserver services = ldap, rpc, kdc, drepl, cldap\\n\\tldap server require strong auth = no\\n\\t$(tls $1)|" $1/etc/smb.conf
}
tls() {
  if [ \${1#dc} -gt ${certificates} ]; then echo 'tls enabled = no'; return; fi
  echo "tls enabled = yes\\n\\ttls keyfile = ${folder}/$1.key\\n\\ttls certfile = ${folder}/$1.pem\\n\\ttls cafile ="
}
names() {
  guid=$(${python} guid.py $1)
  for one in ldap/$2.example.test E3514235-4B06-11D1-AB04-00C04FC2DCD2/$guid/example.test ldap/$guid._msdcs.example.test; do
    samba-tool spn add $one "$3" --configfile=dc1/etc/smb.conf > /dev/null || true
  done
  echo "$4 $guid._msdcs.example.test" >> hosts
}
samba-tool domain provision --realm=${realm} --domain=EXAMPLE --server-role=dc --dns-backend=NONE \\
  --adminpass=${administrator.password} --targetdir=${folder}/dc1 --host-name=dc1 --host-ip=${first} \\
  --option='interfaces=${first}/8' --option='bind interfaces only=yes' > provision.log 2>&1
configure dc1 ${first}
names dc1 dc1 'DC1$' ${first}
samba-tool user create reader ${reader.password} --configfile=dc1/etc/smb.conf > /dev/null
samba-tool user create dedicated ${dedicated.password} --configfile=dc1/etc/smb.conf > /dev/null
samba -i --configfile=${folder}/dc1/etc/smb.conf > dc1.log 2>&1 &
echo $! > dc1.pid
listening() { for round in $(seq 200); do (: < /dev/tcp/$1/389) 2> /dev/null && return; sleep 0.1; done; }
listening ${first}
${
  controllers === 1
    ? ''
    : `samba-tool domain join example.test DC --server=dc1.example.test -W EXAMPLE -U administrator@${realm} \\
  --password=${administrator.password} --use-kerberos=required --realm=${realm} --targetdir=${folder}/dc2 \\
  --dns-backend=NONE --option='netbios name=DC2' --option='interfaces=${second}/8' \\
  --option='bind interfaces only=yes' > join.log 2>&1 || { cat join.log; exit 1; }
configure dc2 ${second}
names dc2 dc2 'DC2$' ${second}
samba -i --configfile=${folder}/dc2/etc/smb.conf > dc2.log 2>&1 &
listening ${second}`
}
echo the domain is there
wait
`

/** Waits until a controller accepts connections, at most 10 s. */
async function listens(address: string): Promise<void> {
  for (let round = 0; round < 100; round += 1) {
    const socket = connect(389, address)
    const accepted = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (accepted) return
    await pause(100)
  }
  throw new Error(`${address} does not listen`)
}
