import { unusedTrust } from '../../../base/net/trust.ts'
import type { Values } from '../../../base/settings/index.ts'
import { includes, networkKind } from '../../engine/index.ts'
import { encryptionOf, firstLine, namedBy, openToAll } from '../../recognition/index.ts'
import {
  authentication,
  bannerUnderTls,
  certificate,
  evaluateBanner,
  hello,
  openingResults,
  postmaster,
  recipient,
  senderCheck,
  signIn,
  size,
  transport,
} from './checks.ts'
import { connectSettings, isImplicit, openSmtp, type SmtpConnectSettings } from './connection.ts'

/**
 * An address as written between < and >: printable ASCII, without characters that could end the address or the line.
 */
const mailAddress = /^[!-;=?A-~]{1,64}@[A-Za-z0-9.:[\]-]{1,255}$/

/** Why the settings cannot be combined, or undefined. */
function validate(settings: SmtpConnectSettings & Values<typeof recipient.settings>): string | undefined {
  const { username, password, tls, fingerprint, clientCert } = settings
  const unused = tls === 'off' ? unusedTrust({ fingerprint, clientCert }, 'TLS, and tls is off') : undefined
  if (unused !== undefined) return unused
  if (password !== undefined && username === undefined) return 'password requires a username'
  if (username !== undefined && password === undefined) return 'username requires a password'
  if (/\p{Cc}/u.test(username ?? '')) return 'username contains a control character'
  if (username !== undefined && tls === 'off')
    return 'username requires TLS, but tls is off: svc never sends a password without TLS'
  for (const name of ['sender', 'recipient'] as const) {
    const written = settings[name]
    if (written !== undefined && !mailAddress.test(written))
      return `${name} must be an address like monitor@example.org`
  }
  return undefined
}

/** Talks to a mail server and closes the connection. Never sends DATA, so no mail is sent. */
export default networkKind({
  name: 'smtp',
  title: 'A mail server (SMTP) accepts mail; svc sends none',
  exposure:
    'Sends mail as the account, unless the server forbids it: this is what stolen accounts of mail servers are used for. Use one that may send to nobody.',
  recognition: [
    {
      name: 'smtp',
      is: (reply, isStandardPort) =>
        /^220[ -]/.test(firstLine(reply)) && (isStandardPort || /smtp|mail/i.test(firstLine(reply))),
      // The name of the server; what follows it may contain the time (RFC 5321, 4.2).
      pool: namedBy(/^220[ -](\S+)/),
      propose: async (server, name) =>
        openToAll(
          'smtp',
          server,
          name,
          await encryptionOf(server, { question: 'EHLO localhost', upgrade: 'starttls' }),
        ),
    },
  ],
  optionalParts: [
    { part: 'STARTTLS', after: 'EHLO lists it' },
    { part: 'AUTH', after: 'EHLO lists it, with PLAIN or LOGIN' },
  ],
  cost: {
    unit: 'commands',
    Basic: [1, 1],
    Standard: [1, 6],
    Advanced: [1, 9],
    adds: [{ setting: 'username', from: 'Standard', requests: 1, signIns: 1 }],
  },
  settings: connectSettings,
  target: ({ host, port }) => ({ host, port }),
  signsIn: ({ username, password }, mode) =>
    username !== undefined && includes(mode, 'Standard')
      ? { account: username, secrets: [password], result: 'sign-in' }
      : undefined,
  validate,
  connect: {
    results: openingResults,
    firstStep: (settings) => (isImplicit(settings) ? 'TLS' : 'banner'),
    open: openSmtp,
    evaluate: ({ connection: { address, banner } }, { latency }) =>
      banner ? evaluateBanner(address, banner, latency) : [],
  },
  checks: [
    transport,
    bannerUnderTls,
    hello,
    certificate,
    authentication,
    size,
    signIn,
    senderCheck,
    recipient,
    postmaster,
  ],
})
