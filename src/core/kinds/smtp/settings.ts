import type { SettingsSpec, Values } from '../../settings/index.ts'

/** What svc.yaml may say of an smtp monitor. */
export const smtpSettings = {
  host: { type: 'text', required: true, doc: 'Host name or address' },
  port: { type: 'integer', default: 25, min: 1, max: 65_535, doc: '25, 587 (submission) or 465 (begins with TLS)' },
  tls: {
    type: 'choice',
    values: ['auto', 'starttls', 'implicit', 'off'],
    default: 'auto',
    doc: '`implicit`: TLS from the first byte; `starttls`: STARTTLS must be offered; `off`: not tried; `auto`: implicit on port 465, else STARTTLS where it is offered, with a warning where not',
  },
  servername: { type: 'text', doc: 'Name to find in the certificate, where it is not `host`' },
  caFile: { type: 'text', doc: 'PEM file of CAs trusted beside those of the system' },
  hello: {
    type: 'text',
    pattern: /^[A-Za-z0-9.:[\]-]{1,255}$/,
    doc: 'What we call ourselves (EHLO): a host name; without it, our address in brackets',
  },
  username: { type: 'text', doc: 'Account to sign in with, from Standard on and under TLS only' },
  password: { type: 'secret', doc: 'Its password' },
  size: { type: 'bytes', doc: 'Size that a message may have at least' },
  sender: { type: 'text', doc: 'Address of MAIL FROM; without it the empty one, as of a bounce' },
  recipient: {
    type: 'text',
    doc: 'Address that must be accepted (Advanced): RCPT TO, and then RSET. A mail is never sent',
  },
  latency: {
    type: 'threshold',
    unit: 'duration',
    default: { warn: 1_000, limit: 3_000 },
    doc: 'How long connection and banner may take',
  },
  certificate: {
    type: 'threshold',
    unit: 'days',
    default: { warn: 20, limit: 3 },
    doc: 'Days that every certificate of the chain has left at least',
  },
} as const satisfies SettingsSpec
export type SmtpSettings = Values<typeof smtpSettings>

/** An address as it stands between < and >: printable ASCII, without what could end it or the line. */
const address = /^[!-;=?A-~]{1,64}@[A-Za-z0-9.:[\]-]{1,255}$/

/** Why the settings cannot be used together, or undefined. */
export function validate(given: SmtpSettings): string | undefined {
  if (given.password !== undefined && given.username === undefined) return 'password needs a username'
  if (given.username !== undefined && given.password === undefined) return 'username needs a password'
  if (/\p{Cc}/u.test(given.username ?? '')) return 'username holds a control character'
  if (given.username !== undefined && given.tls === 'off') return 'a password is never sent without TLS: tls is off'
  if (given.sender !== undefined && given.recipient === undefined) return 'sender is for recipient, which is not given'
  for (const name of ['sender', 'recipient'] as const) {
    const written = given[name]
    if (written !== undefined && !address.test(written)) return `${name} is no address like monitor@example.org`
  }
  return undefined
}

/** Whether TLS begins with the first byte. */
export const isImplicit = ({ tls, port }: SmtpSettings): boolean =>
  tls === 'implicit' || (tls === 'auto' && port === 465)
