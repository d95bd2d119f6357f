import { spawnSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Result } from '../../src/core/engine/index.ts'
import { eximMissing } from './exim.ts'
import { findProgram, remove } from './server.ts'
import { unpackedProgram } from './unpacked.ts'

const unshare = findProgram('unshare') ?? ''
const child = new URL('./kind-child.ts', import.meta.url).pathname
const unpacked = unpackedProgram('postfix', 'usr/sbin/postqueue')

const root = process.platform === 'linux' && process.getuid?.() === 0
export const postfixQueueMissing =
  unpacked === undefined ? 'Postfix is not unpacked' : root ? undefined : 'mounting needs root on Linux'
export const eximQueueMissing = eximMissing ?? (root ? undefined : 'mounting needs root on Linux')

/** Shell lines after which a mail server is at its usual place, in mounts that nobody else sees. */
const installed = {
  postfix: (folder: string): string => `
  mkdir ${folder}/spool ${folder}/lib
  mount -t overlay overlay -o lowerdir=${unpacked?.root}/usr:/usr /usr
  mount -t overlay overlay -o lowerdir=${unpacked?.root}/etc:/etc,upperdir=${folder}/etc,workdir=${folder}/work /etc
  echo 'postfix:x:4101:4101::/:/usr/sbin/nologin' >> /etc/passwd
  printf 'postfix:x:4101:\\npostdrop:x:4102:\\n' >> /etc/group
  cat > /etc/postfix/main.cf <<END
compatibility_level = 3.6
queue_directory = ${folder}/spool
data_directory = ${folder}/lib
mail_owner = postfix
setgid_group = postdrop
inet_interfaces = loopback-only
inet_protocols = ipv4
myhostname = mail.svc.test
mydestination =
relayhost = [127.0.0.1]:1
maillog_file = ${folder}/spool/maillog
maillog_file_prefixes = ${folder}
END
  # No port of the machine: mail comes from this machine only.
  sed '/^smtp .*inet/d' /usr/share/postfix/master.cf.dist > /etc/postfix/master.cf
  chown postfix ${folder}/lib
  chmod 755 ${folder}/spool
  postfix start > ${folder}/start.log 2>&1`,
  exim: (folder: string): string => `
  mkdir ${folder}/spool
  chown nobody ${folder}/spool
  mount -t overlay overlay -o lowerdir=/etc,upperdir=${folder}/etc,workdir=${folder}/work /etc
  mkdir -p /etc/exim4
  cat > /etc/exim4/exim4.conf <<END
spool_directory = ${folder}/spool
log_file_path = ${folder}/spool/log-%s
primary_hostname = mail.svc.test
queue_only = true
exim_user = nobody
exim_group = nogroup
keep_environment =
END`,
} as const
export type QueueServer = keyof typeof installed

/** Shell lines that plant a state of the queue. */
export const queueFaults = {
  empty: '',
  /** Three messages that cannot be delivered. */
  three: `
  for one in 1 2 3; do printf 'Subject: waits\\n\\nwaits\\n' | $sendmail -f a@svc.test someone@example.test; done
  for round in $(seq 50); do sleep 0.1; [ "$($list | grep -c 'someone@example.test')" = 3 ] && break; done`,
  /** Three messages, and the envelope of one is damaged (Exim). */
  get damaged() {
    return `${queueFaults.three}
  for file in $(exim4 -bP spool_directory | sed 's/.*= //')/input/*-H; do echo damaged > $file; break; done`
  },
  /** The mail system has ended, with messages in its queue (Postfix). */
  down: `
  printf 'Subject: waits\\n\\nwaits\\n' | $sendmail -f a@svc.test someone@example.test
  for round in $(seq 50); do sleep 0.1; postqueue -j | grep -q deferred && break; done
  postfix stop > /dev/null 2>&1`,
} as const

const sendmailOf = { postfix: 'sendmail', exim: 'exim4 -odq' } as const
const listOf = { postfix: 'postqueue -j', exim: 'exim4 -bpr' } as const

/** The results of the kind mail-queue on a machine with this mail server and this state of its queue. */
export function queueResults(
  server: QueueServer,
  fault: keyof typeof queueFaults,
  { settings = {}, asOther = false }: { readonly settings?: object; readonly asOther?: boolean } = {},
): readonly Result[] {
  const folder = mkdtempSync(join(tmpdir(), 'svc-mail-queue-'))
  const account = asOther ? 'setpriv --reuid 65533 --regid 65533 --clear-groups' : ''
  const lines = `set -e
  mount --make-rprivate /
  chmod 755 ${folder}
  mount -t tmpfs none ${folder}
  mkdir ${folder}/etc ${folder}/work
  ${installed[server](folder)}
  sendmail='${sendmailOf[server]}'
  list='${listOf[server]}'
  ${queueFaults[fault]}
  ${account} ${process.execPath} ${child} mail-queue '${JSON.stringify({ server, ...settings })}'
  [ ${server} = exim ] || postfix stop > /dev/null 2>&1 || true`
  try {
    const options = { encoding: 'utf8', timeout: 60_000 } as const
    const { stdout, stderr, status } = spawnSync(unshare, ['-m', 'sh', '-c', lines], options)
    if (status !== 0) throw new Error(`${stderr}${stdout}`)
    return JSON.parse(stdout) as readonly Result[]
  } finally {
    remove(folder)
  }
}
