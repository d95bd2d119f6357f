import { spawnSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Result } from '../../../src/core/checks/engine/index.ts'
import { type MountNamespace, startMountNamespace } from '../faults/mount-namespace.ts'
import { eximMissing } from './exim.ts'
import { findProgram, freePort, remove } from './server.ts'
import { unpackedProgram } from './unpacked.ts'

const unshare = findProgram('unshare') ?? ''
const child = new URL('../engine/kind-child.ts', import.meta.url).pathname
const unpacked = unpackedProgram('postfix', 'usr/sbin/postqueue')

const root = process.platform === 'linux' && process.getuid?.() === 0
export const postfixQueueMissing =
  unpacked === undefined ? 'Postfix is not unpacked' : root ? undefined : 'mounting needs root on Linux'
export const eximQueueMissing = eximMissing ?? (root ? undefined : 'mounting needs root on Linux')

export type MailServerOptions = {
  /** Postfix: further lines of main.cf. */
  readonly settings?: readonly string[]
  /** Postfix: the port of 127.0.0.1 at which it takes mail; without one, mail comes from this machine only. */
  readonly port?: number
}

/** Shell lines after which a mail server is at its usual place, in mounts that nobody else sees. */
const installed = {
  postfix: (folder: string, { settings = [], port }: MailServerOptions = {}): string => `
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
mydestination = svc.test
relayhost = [127.0.0.1]:1
maillog_file = ${folder}/spool/maillog
maillog_file_prefixes = ${folder}
${settings.join('\n')}
END
  # No port of the machine.
  sed '/^smtp .*inet/d' /usr/share/postfix/master.cf.dist > /etc/postfix/master.cf
  ${port === undefined ? '' : `echo '127.0.0.1:${port} inet n - n - - smtpd' >> /etc/postfix/master.cf`}
  chown postfix ${folder}/lib
  chmod 755 ${folder}/spool
  postfix start > ${folder}/start.log 2>&1`,
  exim: (folder: string, _?: MailServerOptions): string => `
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

/** Shell lines that prepare a folder and install a mail server there. */
const installation = (server: QueueServer, folder: string, options?: MailServerOptions): string => `
  mount -t tmpfs none ${folder}
  mkdir ${folder}/etc ${folder}/work
  ${installed[server](folder, options)}`
const planting = (server: QueueServer, fault: keyof typeof queueFaults): string => `
  sendmail='${sendmailOf[server]}'
  list='${listOf[server]}'
  ${queueFaults[fault]}`

/** A mail server of this machine, at its usual place in mounts that nobody else sees. */
export type MailMachine = {
  readonly mounts: MountNamespace
  readonly port: number
  /** The folder of its queue. */
  readonly spool: string
  /** Plants a state of the queue; resolves with what empties the queue and starts the mail system again. */
  readonly plant: (fault: keyof typeof queueFaults) => Promise<() => Promise<void>>
  readonly remove: () => Promise<void>
}

export async function startMailMachine(server: QueueServer, settings: readonly string[] = []): Promise<MailMachine> {
  const mounts = await startMountNamespace()
  const port = await freePort()
  const { folder, shell } = mounts
  await shell(installation(server, folder, { settings, port }))
  const emptied =
    server === 'postfix'
      ? 'postfix status 2> /dev/null || postfix start; postsuper -d ALL; postfix flush || true'
      : `rm -rf ${folder}/spool/input`
  return {
    mounts,
    port,
    spool: `${folder}/spool`,
    plant: async (fault) => {
      await shell(planting(server, fault))
      return async () => void (await shell(`(${emptied}) > /dev/null 2>&1`))
    },
    remove: async () => {
      if (server === 'postfix') await shell('postfix stop > /dev/null 2>&1 || true')
      await mounts.remove()
    },
  }
}

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
  ${installation(server, folder)}
  ${planting(server, fault)}
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
