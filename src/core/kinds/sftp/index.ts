import { atMost, checksOn, fail, includes, latencySetting, networkKind, ok, type Result } from '../../engine/index.ts'
import { folderChecks } from '../../folders/index.ts'
import { showDuration } from '../../format.ts'
import { count, quote } from '../../net/text.ts'
import { readAccount, SftpSession } from './session.ts'
import { connectionSettings, validateSftp } from './settings.ts'
import { loadSsh2, speaksSsh } from './ssh.ts'

const { hostKey, username } = connectionSettings
const latency = latencySetting(
  { warn: 1_000, limit: 3_000 },
  'How long each may take: the banner, the sign-in, the listing',
)

const check = checksOn<SftpSession>()

export const banner = check({
  depth: 'Basic',
  results: { banner: 'The server greets as SSH 2 does, in time' },
  settings: { latency },
  observe: async ({ greeting }) => greeting,
  evaluate(greeting, { latency: threshold }): Result<'banner'> {
    const { address, ended, banner, software, ms: value } = greeting
    const facts = software === undefined ? {} : { facts: { version: software } }
    if (speaksSsh(greeting)) {
      const what = `${address} said ${banner} in`
      return { ...atMost({ check: 'banner', what, value, unit: 'duration', threshold }), ...facts }
    }
    const nothing = banner === '""'
    if (ended === 'met') return fail('banner', 'protocol', `${address} said ${banner}: not version 2 of SSH`, facts)
    if (ended === 'silent') {
      const half = nothing ? 'accepted the connection and then said nothing' : `said ${banner} and no more`
      return fail('banner', 'timeout', `${address} ${half} for ${showDuration(value)}`)
    }
    if (nothing) {
      const details = [
        'look: its limit of sessions that are not signed in (MaxStartups), and who is kept out by address',
      ]
      return fail('banner', 'refused', `${address} hung up before it said anything`, { details })
    }
    return fail('banner', 'protocol', `${address} does not answer as SSH does: it said ${banner}`)
  },
})

export const serverKey = check({
  depth: 'Standard',
  results: { 'host key': 'Its key is one of `hostKey`; nobody signs in to any other' },
  settings: { hostKey, username },
  applies: (session) => session.speaksSsh,
  observe: (session, settings, context) => session.exchangeKeys(settings.hostKey ?? [], context),
  evaluate({ address, type, fingerprint }, settings) {
    const message = `${address} showed ${type} ${fingerprint}`
    const facts = { hostKey: fingerprint }
    const details = ['compare with what ssh-keygen -lf says of /etc/ssh/ssh_host_*_key.pub on the server itself']
    const expected = settings.hostKey?.map((print) => print.replace(/=$/, ''))
    if (expected?.includes(fingerprint)) return ok('host key', message, { facts })
    if (expected !== undefined) {
      const cause = 'a key of another type, a new installation, or somebody in between'
      const text = `${message}, which hostKey does not name: ${cause}; nobody was signed in`
      // `tls` is the fault class for a peer with the wrong identity.
      return fail('host key', 'tls', text, { details, facts })
    }
    if (settings.username === undefined) return ok('host key', `${message}; without hostKey it is only told`, { facts })
    const text = `${message}, and no hostKey is set: nobody was signed in to an unknown server`
    return fail('host key', 'data', text, { details, facts })
  },
})

export const signIn = check({
  depth: 'Standard',
  results: { 'sign-in': 'The account is let in, in time' },
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
  results: { listing: 'SFTP starts and lists the folder where a sign-in ends, in time' },
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
  title: 'An SFTP server is the right one, lets in and lists',
  preload: loadSsh2,
  settings: connectionSettings,
  target: ({ host, port }) => ({ host, port }),
  signsIn: ({ username }, mode) => username !== undefined && includes(mode, 'Standard'),
  validate: validateSftp,
  prepare: readAccount,
  connect: { results: {}, firstStep: () => 'banner', open: SftpSession.open },
  checks: [banner, serverKey, signIn, listing, ...folderChecks],
})
