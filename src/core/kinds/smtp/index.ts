import { includes, networkKind } from '../../engine/index.ts'
import type { Values } from '../../settings/index.ts'
import {
  authentication,
  bannerUnderTls,
  certificate,
  evaluateBanner,
  hello,
  openingResults,
  recipient,
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
  const { username, password, tls, sender } = settings
  if (password !== undefined && username === undefined) return 'password needs a username'
  if (username !== undefined && password === undefined) return 'username needs a password'
  if (/\p{Cc}/u.test(username ?? '')) return 'username holds a control character'
  if (username !== undefined && tls === 'off') return 'a password is never sent without TLS: tls is off'
  if (sender !== undefined && settings.recipient === undefined) return 'sender is for recipient, which is not given'
  for (const name of ['sender', 'recipient'] as const) {
    const written = settings[name]
    if (written !== undefined && !mailAddress.test(written)) return `${name} is no address like monitor@example.org`
  }
  return undefined
}

/** Talks to a mail server and closes the connection. Never sends DATA, so no mail is sent. */
export default networkKind({
  name: 'smtp',
  title: 'A mail server (SMTP) takes mail; none is sent',
  settings: connectSettings,
  target: ({ host, port }) => ({ host, port }),
  signsIn: ({ username }, mode) => username !== undefined && includes(mode, 'Standard'),
  validate,
  connect: {
    results: openingResults,
    firstStep: (settings) => (isImplicit(settings) ? 'TLS' : 'banner'),
    open: openSmtp,
    evaluate: ({ connection: { address, banner } }, { latency }) =>
      banner ? evaluateBanner(address, banner, latency) : [],
  },
  checks: [transport, bannerUnderTls, hello, certificate, authentication, size, signIn, recipient],
})
