import { count, showDuration } from '../../../base/format.ts'
import { listConnections } from '../../../base/net/connect.ts'
import { quote } from '../../../base/net/text.ts'
import { atMost, checksOn, fail, includes, latencySetting, networkKind, ok, type Result } from '../../engine/index.ts'
import { folderChecks } from '../../folders/index.ts'
import { begins, namedBy, openToAll } from '../../recognition/index.ts'
import { connectionSettings, readAccount, SftpSession, validateSftp } from './session.ts'
import { isSsh, loadSsh2 } from './ssh.ts'

const { hostKey, username } = connectionSettings
const latency = latencySetting(
  { warn: 1_000, limit: 3_000 },
  'Maximum time for the banner, the sign-in and the listing, each',
)

const check = checksOn<SftpSession>()

/** The texts that OpenSSH sends in place of its banner when it drops a connection. */
const refusals = /^"(?:Exceeded MaxStartups|Not allowed at this time)/

export const banner = check({
  depth: 'Basic',
  results: { banner: 'The server sends the banner of SSH 2 in time' },
  settings: { latency },
  observe: async ({ greeting }) => greeting,
  evaluate(greeting, { latency: threshold }): Result<'banner'> {
    const { address, ended, banner, software, ms: value } = greeting
    const facts = software === undefined ? {} : { facts: { version: software } }
    if (isSsh(greeting)) {
      const what = `${address} sent ${banner} in`
      return { ...atMost({ check: 'banner', what, value, unit: 'duration', threshold }), ...facts }
    }
    const nothing = banner === '""'
    if (ended === 'met') return fail('banner', 'protocol', `${address} sent ${banner}: not SSH version 2`, facts)
    if (ended === 'silent') {
      const half = nothing ? 'accepted the connection but sent nothing' : `sent ${banner} and nothing more`
      return fail('banner', 'timeout', `${address} ${half} for ${showDuration(value)}`)
    }
    if (nothing) {
      const details = ['check its limit of unauthenticated connections (MaxStartups) and its blocked addresses']
      return fail('banner', 'refused', `${address} closed the connection before sending anything`, { details })
    }
    if (refusals.test(banner)) {
      const details = [
        listConnections(address),
        'OpenSSH: too many sign-ins are in progress (MaxStartups), or it penalizes this address (PerSourcePenalties); see its log',
      ]
      return fail('banner', 'refused', `${address} accepts no more connections for now: it sent ${banner}`, { details })
    }
    return fail('banner', 'protocol', `${address} does not speak SSH: it sent ${banner}`)
  },
})

export const serverKey = check({
  depth: 'Standard',
  results: { 'host key': 'The host key is one of `hostKey`; svc signs in to no other server' },
  settings: { hostKey, username },
  applies: (session) => session.isSsh,
  observe: (session, settings, context) => session.exchangeKeys(settings.hostKey ?? [], context),
  evaluate({ address, type, fingerprint }, settings) {
    const message = `${address} presented ${type} ${fingerprint}`
    const facts = { hostKey: fingerprint }
    const details = ['next: compare with the output of ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub on the server']
    const expected = settings.hostKey?.map((print) => print.replace(/=$/, ''))
    if (expected?.includes(fingerprint)) return ok('host key', message, { facts })
    if (expected !== undefined) {
      const cause = 'a key of another type, a reinstalled server, or a man in the middle'
      const text = `${message}, which is not in hostKey: ${cause}; not signed in`
      // `tls` is the fault class for a peer with the wrong identity.
      return fail('host key', 'tls', text, { details, facts })
    }
    if (settings.username === undefined)
      return ok('host key', `${message}; not verified, because hostKey is not set`, { facts })
    const text = `${message}, but hostKey is not set: not signed in to an unknown server`
    return fail('host key', 'data', text, { details, facts })
  },
})

export const signIn = check({
  depth: 'Standard',
  results: { 'sign-in': 'The account can sign in, in time' },
  settings: { username, latency },
  applies: ({ isServerKnown }) => isServerKnown,
  observe: (session, settings) => session.signIn(settings.username ?? ''),
  evaluate: ({ address, username: account, ms: value }, { latency: threshold }) =>
    atMost({
      check: 'sign-in',
      what: `signed in to ${address} as ${quote(account, 64)} in`,
      value,
      unit: 'duration',
      threshold,
    }),
})

export const listing = check({
  depth: 'Standard',
  results: { listing: 'SFTP starts and lists the initial folder of the account in time' },
  privilege: 'setfacl -m u:<account>:rx <initial folder>, and ForceCommand internal-sftp suffices',
  settings: { latency },
  applies: ({ isSignedIn }) => isSignedIn,
  observe: (session) => session.listHome(),
  evaluate({ folder, entries, more, ms: value }, { latency: threshold }) {
    const many = `${more ? 'more than ' : ''}${count(entries, 'entry', 'entries')}`
    const what = `${many} of ${quote(folder, 120)} listed in`
    return atMost({ check: 'listing', what, value, unit: 'duration', threshold })
  },
})

/** Speaks SSH as far as the mode allows, and signs in only to a server with a known key. */
export default networkKind({
  name: 'sftp',
  title: 'An SFTP server has the expected key, accepts the sign-in and lists a folder',
  exposure:
    'Reads what the account may read; with probeFolder it also writes and deletes there. ForceCommand internal-sftp leaves no shell, and from= in authorized_keys limits the key to the addresses of svc.',
  recognition: [
    {
      name: 'ssh',
      is: begins('SSH-'),
      pool: namedBy(/^(SSH-[^\r\n]+)/),
      propose: (server, name) => openToAll('sftp', server, name),
    },
  ],
  driver: 'sftp',
  preload: loadSsh2,
  optionalParts: [
    { part: 'ext-info-c', unasked: 'A server ignores names of algorithms that it does not know (RFC 8308, 2.1)' },
  ],
  cost: {
    unit: 'SFTP requests',
    Basic: [1, 0],
    Standard: [1, 0],
    Advanced: [1, 0],
    adds: [
      { setting: 'username', from: 'Standard', requests: 5, signIns: 1 },
      { setting: 'folder', from: 'Advanced', requests: 4 },
      { setting: 'allowWrites', from: 'Advanced', requests: 30 },
    ],
    besides: 'A folder with many files adds requests.',
  },
  settings: connectionSettings,
  target: ({ host, port }) => ({ host, port }),
  signsIn: ({ username, password, privateKey }, mode) =>
    username !== undefined && includes(mode, 'Standard')
      ? { account: username, secrets: [password, privateKey], result: 'sign-in' }
      : undefined,
  validate: validateSftp,
  prepare: readAccount,
  connect: { results: {}, firstStep: () => 'banner', open: SftpSession.open },
  checks: [banner, serverKey, signIn, listing, ...folderChecks],
})
