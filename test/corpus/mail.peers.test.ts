import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { fillDisk } from '../support/faults/full-disk.ts'
import { mountNamespaceMissing } from '../support/faults/mount-namespace.ts'
import { makeCertificates, opensslMissing } from '../support/servers/certs.ts'
import { type Exim, eximMissing, greylisting, oneConnection, refusingAll, startExim } from '../support/servers/exim.ts'
import {
  eximQueueMissing,
  type MailMachine,
  postfixQueueMissing,
  startMailMachine,
} from '../support/servers/mail-queue.ts'
import { type SmtpPeer, smtpAccount, startSmtp } from '../support/servers/smtp.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { fails, type Row, warns } from './row.ts'

const certificates = opensslMissing() === undefined ? makeCertificates() : undefined
afterAll(() => certificates?.remove())

const recipient = 'someone@svc.test'
const smtp = (port: number, more: object = {}) => ({
  kind: 'smtp',
  host: '127.0.0.1',
  port,
  caFile: certificates?.caFile,
  recipient,
  ...more,
})
const askSmtp = (port: number): readonly PeerProgram[] => [
  { program: 'check_smtp', args: ['-H', '127.0.0.1', '-p', String(port), '-t', '5'] },
  {
    program: 'blackbox_exporter',
    module: { prober: 'tcp', tcp: { query_response: [{ expect: '^220 ' }] } },
    target: `127.0.0.1:${port}`,
  },
]
/** Holds a connection on which the server has greeted. */
const openConnections = async (port: number): Promise<() => void> => {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'data')
  return () => void socket.destroy()
}
const neverGreylisting = /greylisting/

type Exims = {
  readonly good: Exim
  readonly greylisting: Exim
  readonly busy: Exim
  readonly expired: Exim
  readonly otherHost: Exim
  readonly refusing: Exim
}
const exim =
  (more: object = {}, name: keyof Exims = 'good') =>
  (servers: Exims) =>
    smtp(servers[name].port, more)
const askExim =
  (name: keyof Exims = 'good') =>
  (servers: Exims) =>
    askSmtp(servers[name].port)

const eximRows: readonly Row<Exims>[] = [
  {
    fault: 'healthy, with a recipient and a size',
    monitor: exim({ size: '1MB' }),
    expected: { state: 'healthy' },
    peers: askExim(),
  },
  {
    fault: 'the spool is full',
    monitor: exim(),
    plant: ({ good }) => {
      const { free } = fillDisk(good.spool)
      return Promise.resolve(free)
    },
    expected: fails('sender', 'data', /452 .*no room/, { never: neverGreylisting }),
    before: 'warning: greylisting',
    peers: askExim(),
  },
  {
    fault: 'the server defers recipients (greylisting)',
    monitor: exim({}, 'greylisting'),
    expected: warns('recipient', /451 .*greylist/),
    peers: askExim('greylisting'),
  },
  ...(['good', 'greylisting'] as const).map(
    (name): Row<Exims> => ({
      fault: `healthy without a recipient: ${name}`,
      monitor: exim({ recipient: undefined }, name),
      expected: { state: 'healthy' },
      peers: askExim(name),
    }),
  ),
  {
    fault: 'the server refuses every recipient',
    monitor: exim({ recipient: undefined }, 'refusing'),
    expected: warns('postmaster', /RCPT TO <postmaster>.*550 .*mail is not accepted/),
    before: 'ok',
    peers: askExim('refusing'),
  },
  {
    fault: 'healthy without a recipient, at a server that is known to refuse postmaster',
    monitor: exim({ recipient: undefined, postmaster: false }, 'refusing'),
    expected: { state: 'healthy' },
    peers: askExim('refusing'),
  },
  {
    fault: 'the mailbox does not exist',
    monitor: exim({ recipient: 'nobody@svc.test' }),
    expected: fails('recipient', 'data', /550 .*User unknown/),
    peers: askExim(),
  },
  {
    fault: 'the server accepts no more connections',
    monitor: exim({}, 'busy'),
    plant: ({ busy }) => openConnections(busy.port),
    expected: fails('banner', 'refused', /421 .*(too many|temporarily)/i),
    peers: askExim('busy'),
  },
  {
    fault: 'an expired certificate',
    monitor: exim({}, 'expired'),
    expected: fails('TLS', 'tls', /expired/),
    peers: ({ expired }) => [
      { program: 'check_smtp', args: ['-H', '127.0.0.1', '-p', String(expired.port), '-S', '-D', '14', '-t', '5'] },
    ],
  },
  {
    fault: 'a certificate for another name',
    monitor: exim({}, 'otherHost'),
    expected: fails('TLS', 'tls', /elsewhere\.test/),
    peers: askExim('otherHost'),
  },
  {
    fault: 'nothing listens on the port',
    monitor: () => smtp(1),
    expected: fails('banner', 'refused', /refused/),
    peers: () => askSmtp(1),
  },
]

corpus<Exims>({
  server: 'Exim 4.96',
  missing: eximMissing ?? opensslMissing(),
  start: async () => {
    if (!certificates) throw new Error('no certificates')
    return {
      good: await startExim([], certificates.good),
      greylisting: await startExim(greylisting, certificates.good),
      busy: await startExim(oneConnection, certificates.good),
      expired: await startExim([], certificates.expired),
      otherHost: await startExim([], certificates.otherHost),
      refusing: await startExim(refusingAll, certificates.good),
    }
  },
  rows: eximRows,
})

const queue = (server: string, more: object = {}) => ({ kind: 'mail-queue', server, ...more })
const askQueue = (server: string) => (): readonly PeerProgram[] => [
  { program: 'check_mailq', args: ['-w', '1', '-c', '2', '-M', server] },
]
const queueRows = (server: 'postfix' | 'exim'): readonly Row<MailMachine>[] => [
  {
    fault: 'healthy: an empty queue',
    monitor: () => queue(server),
    expected: { state: 'healthy' },
    peers: askQueue(server),
  },
  {
    fault: 'three messages that cannot be delivered',
    monitor: () => queue(server, { messages: { warn: 1, limit: 2 } }),
    plant: ({ plant }) => plant('three'),
    expected: fails('queue', 'threshold', /messages in the queue: 3/),
    peers: askQueue(server),
  },
]

corpus<MailMachine>({
  server: 'Exim 4.96 as the mail server of this machine',
  missing: eximQueueMissing ?? mountNamespaceMissing,
  start: () => startMailMachine('exim'),
  mounts: ({ mounts }) => mounts,
  rows: queueRows('exim'),
})

const postfix =
  (more: object = {}) =>
  ({ port }: MailMachine) =>
    smtp(port, more)
const askPostfix = ({ port }: MailMachine): readonly PeerProgram[] => askSmtp(port)

corpus<MailMachine>({
  server: 'Postfix 3.7.11',
  missing: postfixQueueMissing ?? mountNamespaceMissing ?? opensslMissing(),
  start: async () => {
    if (!certificates) throw new Error('no certificates')
    const file = join(certificates.caFile, '../postfix.pem')
    writeFileSync(file, `${certificates.good.key}\n${certificates.good.cert}`, { mode: 0o600 })
    return await startMailMachine('postfix', [
      `smtpd_tls_chain_files = ${file}`,
      'smtpd_tls_security_level = may',
      `local_recipient_maps = inline:{ {${recipient} = x} {later@svc.test = x} {wrong@svc.test = x} }`,
      'smtpd_recipient_restrictions = check_recipient_access inline:{ {later@svc.test = 450 4.2.0 Greylisted} {wrong@svc.test = no_such_restriction} }',
      // The monitor is a stranger, as in production.
      'mynetworks = 192.0.2.1/32',
      'smtpd_client_connection_count_limit = 5',
      'smtpd_client_event_limit_exceptions =',
    ])
  },
  mounts: ({ mounts }) => mounts,
  rows: [
    {
      fault: 'healthy, with a recipient and a size',
      monitor: postfix({ size: '1MB' }),
      expected: { state: 'healthy' },
      peers: askPostfix,
    },
    ...queueRows('postfix'),
    {
      fault: 'the oldest message waits for too long',
      monitor: () => queue('postfix', { age: { limit: '1s' } }),
      plant: async ({ mounts, plant }) => {
        const empty = await plant('three')
        await mounts.shell('sleep 3')
        return empty
      },
      expected: fails('oldest message', 'threshold', /has waited [2-9]/),
      peers: askQueue('postfix'),
    },
    {
      fault: 'the mail system has ended, with a message in its queue',
      monitor: () => queue('postfix'),
      plant: ({ plant }) => plant('down'),
      expected: fails('queue', 'refused', /mail system is down.*1 message/),
      peers: askQueue('postfix'),
    },
    {
      fault: 'the mail system has ended: its port',
      monitor: postfix(),
      plant: ({ plant }) => plant('down'),
      expected: fails('banner', 'refused', /refused/),
      peers: askPostfix,
    },
    {
      fault: 'the spool is full',
      monitor: postfix(),
      plant: async ({ mounts, spool }) => {
        await mounts.shell(
          `mount -o remount,size=32m ${mounts.folder}; dd if=/dev/zero of=${spool}/filler bs=64k 2> /dev/null || true`,
        )
        return async () => void (await mounts.shell(`rm ${spool}/filler; mount -o remount,size=256m ${mounts.folder}`))
      },
      expected: fails('sender', 'data', /4\.3\.1.*no room/, { never: neverGreylisting }),
      before: 'warning: greylisting',
      peers: askPostfix,
    },
    {
      fault: 'the server defers the recipient (greylisting)',
      monitor: postfix({ recipient: 'later@svc.test' }),
      expected: warns('recipient', /450 4\.2\.0 .*greylisting/),
      peers: askPostfix,
    },
    {
      fault: 'a restriction of the server is misspelled',
      monitor: postfix({ recipient: 'wrong@svc.test' }),
      expected: fails('recipient', 'data', /4\.3\.5 .*misconfigured/, { never: /no room|greylisting/ }),
      before: 'unhealthy: no room',
      peers: askPostfix,
    },
    {
      fault: 'healthy without a recipient',
      monitor: postfix({ recipient: undefined }),
      expected: { state: 'healthy' },
      peers: askPostfix,
    },
    {
      fault: 'the server does not relay for this machine',
      monitor: postfix({ recipient: 'someone@example.test' }),
      expected: fails('recipient', 'data', /Relay access denied/, { never: neverGreylisting }),
      before: 'warning: greylisting',
      peers: askPostfix,
    },
    {
      fault: 'the mailbox does not exist',
      monitor: postfix({ recipient: 'nobody@svc.test' }),
      expected: fails('recipient', 'data', /5\.1\.1/),
      peers: askPostfix,
    },
    {
      fault: 'the server accepts no more connections from here',
      monitor: postfix(),
      plant: async ({ port }) => {
        const all: (() => void)[] = []
        for (let one = 0; one < 5; one += 1) all.push(await openConnections(port))
        return () => {
          for (const end of all) end()
        }
      },
      expected: fails('banner', 'refused', /421 .*too many connections/),
      peers: askPostfix,
    },
  ],
})

const env: Record<string, string> = { PASSWORD: smtpAccount.password, WRONG: 'another password' }
const account = { username: smtpAccount.username, password: { env: 'PASSWORD' }, recipient: 'accepted@svc.test' }
const smtpServer =
  (more: object = {}) =>
  ({ port }: SmtpPeer) =>
    smtp(port, { ...account, ...more })
const askServer = ({ port }: SmtpPeer): readonly PeerProgram[] => askSmtp(port)

corpus<SmtpPeer>({
  server: 'smtp-server 3.21.6 (npm)',
  env,
  missing: opensslMissing(),
  start: () => {
    if (!certificates) throw new Error('no certificates')
    return startSmtp({ ...certificates.good })
  },
  rows: [
    { fault: 'healthy, with a sign-in', monitor: smtpServer(), expected: { state: 'healthy' }, peers: askServer },
    {
      fault: 'the password was changed',
      monitor: smtpServer({ password: { env: 'WRONG' } }),
      expected: fails('sign-in', 'auth', /refused the sign-in of "monitor".*535/),
      peers: askServer,
    },
    {
      fault: 'the server cannot verify passwords at the moment',
      monitor: smtpServer({ username: 'busy' }),
      expected: fails('sign-in', 'data', /454/),
      peers: askServer,
    },
    {
      fault: 'the server defers the recipient (greylisting)',
      monitor: smtpServer({ recipient: 'later@svc.test' }),
      expected: warns('recipient', /450 .*greylisting/),
      peers: askServer,
    },
  ],
})

corpus<SmtpPeer>({
  server: 'smtp-server, which knows no address without a domain, as Haraka and GreenMail',
  env,
  missing: opensslMissing(),
  start: () => {
    if (!certificates) throw new Error('no certificates')
    return startSmtp({
      ...certificates.good,
      onRcptTo: (_, _session, done) => done(Object.assign(new Error('No such command here'), { responseCode: 503 })),
    })
  },
  rows: [
    {
      fault: 'healthy: the answer to postmaster is about its form, never met',
      mode: 'Advanced',
      monitor: smtpServer({ recipient: undefined }),
      expected: { state: 'healthy' },
      peers: askServer,
    },
  ],
})
