import { trustDecision } from '../../../base/net/certificates.ts'
import { listConnections } from '../../../base/net/connect.ts'
import { quote, sanitize } from '../../../base/net/text.ts'
import { ProbeError, refusedSignIn } from '../../../base/probe-error.ts'
import type { SettingsSpec, Threshold } from '../../../base/settings/index.ts'
import {
  atLeast,
  atMost,
  type CheckContext,
  certificateSetting,
  evaluateExpiry,
  fail,
  includes,
  notChecked,
  ok,
  type Result,
  warn,
} from '../../engine/index.ts'
import {
  base64,
  connectLatency,
  type Extensions,
  onSmtp,
  plainCredentials,
  type SmtpBanner,
  type SmtpConnection,
  type SmtpEncryption,
  type SmtpReply,
  usernameSetting,
} from './connection.ts'

/** The results of opening the connection: the banner, or TLS if that comes first. */
export const openingResults = {
  banner: 'The server reports that it is ready in time',
  TLS: 'The certificate is trusted and for this server; in Basic only with implicit TLS (port 465)',
} as const

export function evaluateBanner(address: string, { code, text, ms: value }: SmtpBanner, threshold: Threshold) {
  if (code === 220) {
    const what = `${address} sent ${text} in`
    return atMost({ check: 'banner', what, value, unit: 'duration', threshold })
  }
  const why =
    code === 554
      ? 'it does not accept mail, or not from here'
      : code === 421
        ? 'it is temporarily unavailable'
        : 'expected 220'
  return fail('banner', code >= 400 ? 'refused' : 'protocol', `${address} sent ${text}: ${why}`, {
    details: code === 421 ? [listConnections(address)] : [],
  })
}

type Transport = {
  readonly address: string
  /** Undefined without TLS. */
  readonly encryption?: SmtpEncryption | undefined
  /** True if the server does not offer STARTTLS, so that mail would travel in clear text. */
  readonly clear?: boolean
  readonly loopback: boolean
}

/** Starts TLS from Standard on, if the server offers it; Basic closes the connection after the banner. */
async function observeTransport(
  smtp: SmtpConnection,
  _settings: unknown,
  { mode, step }: CheckContext,
): Promise<Transport> {
  const { address, loopback } = smtp
  if (smtp.implicit) return { address, loopback, encryption: smtp.encryption }
  if (smtp.tls === 'off' || !includes(mode, 'Standard')) return { address, loopback }
  step('hello')
  const offered = (await smtp.extensions()).has('STARTTLS')
  if (!offered && smtp.tls !== 'starttls') return { address, loopback, clear: true }
  step('TLS')
  return { address, loopback, encryption: await smtp.startTls() }
}

export const transport = onSmtp({
  depth: 'Basic',
  results: { TLS: openingResults.TLS },
  gate: true,
  observe: observeTransport,
  evaluate: ({ address, loopback, clear, encryption }): Result<'TLS'> | [] => {
    if (clear && loopback) return ok('TLS', `${address} does not offer STARTTLS (this machine)`)
    if (clear) return warn('TLS', `${address} does not offer STARTTLS: mail and passwords would be sent unencrypted`)
    if (!encryption) return []
    const { chain, distrust } = encryption
    if (distrust !== undefined) return fail('TLS', 'tls', distrust)
    const how = chain.pin
      ? `, certificate ${trustDecision(chain)}`
      : ` with a trusted certificate for ${sanitize(chain.host, 100)}`
    return ok('TLS', `${address} speaks ${chain.protocol}${how}`)
  },
})

/** With implicit TLS, the banner comes after TLS. */
export const bannerUnderTls = onSmtp({
  depth: 'Basic',
  results: { banner: openingResults.banner },
  settings: { latency: connectLatency },
  gate: true,
  applies: ({ implicit }) => implicit,
  observe: async (smtp) => ({ address: smtp.address, banner: await smtp.greeting() }),
  evaluate: ({ address, banner }, { latency }) => evaluateBanner(address, banner, latency),
})

export const hello = onSmtp({
  depth: 'Standard',
  results: { hello: 'The server accepts EHLO and lists its extensions' },
  gate: true,
  observe: async (smtp) => ({ address: smtp.address, names: [...(await smtp.extensions()).keys()].slice(0, 50) }),
  evaluate: ({ address, names }) =>
    ok('hello', `${address} supports ${names.length === 0 ? 'no extensions' : sanitize(names.join(', '), 200)}`),
})

/** Applies only with TLS. The dates of an untrusted certificate do not matter. */
export const certificate = onSmtp({
  depth: 'Standard',
  results: { certificate: 'Every certificate in the chain remains valid long enough' },
  settings: { certificate: certificateSetting },
  observe: observeTransport,
  evaluate: ({ encryption }, settings) =>
    encryption && encryption.distrust === undefined
      ? evaluateExpiry('certificate', encryption.chain, settings.certificate)
      : [],
})

/** The password methods that the server offers, the preferred one first. */
const passwordMethods = (extensions: Extensions): readonly ('PLAIN' | 'LOGIN')[] =>
  (['PLAIN', 'LOGIN'] as const).filter((method) => extensions.get('AUTH')?.includes(method))

export const authentication = onSmtp({
  depth: 'Standard',
  results: {
    authentication:
      'The server does not accept passwords before TLS, and on a port of submission (465, 587) offers AUTH',
  },
  observe: async (smtp) => ({
    address: smtp.address,
    isSubmission: smtp.isSubmission,
    methods: (await smtp.extensions()).get('AUTH') ?? [],
    inClear: smtp.extensionsInClear !== undefined && passwordMethods(smtp.extensionsInClear).length > 0,
  }),
  evaluate: ({ address, isSubmission, methods, inClear }): Result<'authentication'> => {
    if (inClear) return warn('authentication', `${address} accepts passwords before TLS, unencrypted`)
    if (methods.length > 0) return ok('authentication', `${address} offers ${sanitize(methods.join(' '), 100)}`)
    if (isSubmission) return warn('authentication', `${address} offers no AUTH, so that no client can send mail there`)
    return ok('authentication', `${address} offers no AUTH: it only accepts mail for itself`)
  },
})

export const size = onSmtp({
  depth: 'Standard',
  results: { size: 'The server accepts messages of the required size; omitted without `size`' },
  settings: { size: { type: 'bytes', doc: 'Minimum message size that the server must accept' } },
  applies: (_, settings) => settings.size !== undefined,
  observe: async (smtp) => ({ address: smtp.address, bytes: maxMessageBytes(await smtp.extensions()) }),
  evaluate: ({ address, bytes: value }, { size: limit = 0 }) => {
    if (value === undefined) return ok('size', `${address} states no limit for the size of a message`)
    const what = `${address} accepts messages up to`
    return atLeast({ check: 'size', what, value, unit: 'bytes', threshold: { limit } })
  },
})

/** Undefined if the server states no limit. */
function maxMessageBytes(extensions: Extensions): number | undefined {
  const [written] = extensions.get('SIZE') ?? []
  // `SIZE` and `SIZE 0` mean no fixed limit (RFC 1870).
  return written !== undefined && /^\d{1,15}$/.test(written) && Number(written) > 0 ? Number(written) : undefined
}

export const signIn = onSmtp({
  depth: 'Standard',
  results: { 'sign-in': 'The account can sign in; omitted without `username`' },
  privilege: 'an account that may sign in (AUTH), without a mailbox',
  settings: { username: usernameSetting },
  applies: ({ credentials }) => credentials !== undefined,
  observe: async (smtp) => {
    await authenticate(smtp)
    return { address: smtp.address }
  },
  evaluate: ({ address }, { username = '' }) => ok('sign-in', `signed in to ${address} as ${sanitize(username, 64)}`),
})

/** Throws ProbeError `auth` for a refusal, and `data` for a temporary error or missing TLS. */
async function authenticate(smtp: SmtpConnection): Promise<void> {
  const { address, credentials = { username: '', password: '' } } = smtp
  if (!smtp.encryption) {
    throw smtp.end(new ProbeError('data', `the password is not sent to ${address}: it offers no TLS`))
  }
  const extensions = await smtp.extensions()
  const [method] = passwordMethods(extensions)
  if (method === undefined) {
    const offered = extensions.get('AUTH')?.join(' ') ?? ''
    const instead = offered === '' ? '' : `, only ${quote(offered, 80)}`
    throw smtp.end(new ProbeError('data', `${address} offers no sign-in by PLAIN or LOGIN${instead}`))
  }
  const { username, password } = credentials
  let reply = await smtp.ask(method === 'PLAIN' ? `AUTH PLAIN ${plainCredentials(credentials)}` : 'AUTH LOGIN')
  const parts = [['the username', username] as const, ['the password', password] as const]
  for (const [name, text] of method === 'LOGIN' ? parts : []) {
    if (reply.code === 334) reply = await smtp.ask(base64(text), name)
  }
  if (reply.code === 235) return
  const refused = refusedSignIn(address, quote(username, 64), smtp.quote(reply))
  // A 4xx reply means that the server could not verify the password, so this is not a refusal.
  throw smtp.end(reply.code >= 500 ? refused : new ProbeError('data', refused.message))
}

const senderSetting = {
  type: 'text',
  doc: 'Address of MAIL FROM; default: empty, as in a bounce, which every server must accept',
} as const satisfies SettingsSpec[string]

export const senderCheck = onSmtp({
  depth: 'Standard',
  results: { sender: 'The server accepts the sender of a mail and has room for it; svc then resets the transaction' },
  settings: { sender: senderSetting },
  privilege: 'no account, or one that may send as <sender>',
  observe: async (smtp, { sender: from = '' }) => {
    const signedIn = smtp.credentials !== undefined
    const reply = await smtp.ask(`MAIL FROM:<${from}>`, 'MAIL FROM')
    const verdict = verdictOf(reply)
    const reset = verdict === 'accepted' ? await askReset(smtp) : undefined
    return { address: smtp.address, verdict, reset, signedIn, code: reply.code, answer: smtp.quote(reply) }
  },
  evaluate: ({ address, verdict, reset, signedIn, code, answer }, { sender: from = '' }): Result<'sender'> => {
    const message = `${address}: MAIL FROM <${sanitize(from, 100)}>: ${answer}`
    // 530 asks for a sign-in or for TLS first (RFC 4954, RFC 3207): it says nothing about the room for mail.
    if (code === 530 && !signedIn) {
      const needed = /starttls/i.test(answer) ? 'allow STARTTLS in tls' : 'set username and password'
      return notChecked('sender', 'permission', `${message}; ${needed}`)
    }
    if (verdict === 'accepted') return reset === undefined ? ok('sender', message) : warn('sender', reset)
    return refused('sender', verdict, message)
  },
})

const recipientSetting = {
  type: 'text',
  doc: 'Address that the server must accept (Advanced): svc sends RCPT TO, then RSET, and never a mail',
} as const satisfies SettingsSpec[string]

export const recipient = onSmtp({
  depth: 'Advanced',
  results: {
    recipient: 'The server accepts the recipient; svc then resets the transaction; omitted without `recipient`',
  },
  settings: { sender: senderSetting, recipient: recipientSetting },
  privilege: 'no account, or one that may send as <sender>',
  applies: (_, settings) => settings.recipient !== undefined,
  observe: async (smtp, { sender: from = '', recipient: to = '' }) => ({
    address: smtp.address,
    ...(await offerRecipient(smtp, from, to)),
  }),
  evaluate: ({ address, verdict, reset, answer }, { recipient: to = '' }) => {
    const message = `${address}: RCPT TO ${sanitize(to, 100)} (no mail sent): ${answer}`
    if (verdict === 'accepted') return reset === undefined ? ok('recipient', message) : warn('recipient', reset)
    return refused('recipient', verdict, message)
  },
})

/** A server that accepts MAIL FROM may refuse every recipient. Each must accept this one (RFC 5321, 4.5.1). */
export const postmaster = onSmtp({
  depth: 'Advanced',
  results: {
    postmaster:
      'Without `recipient`: the server accepts the recipient postmaster; svc then resets the transaction; omitted on a port of submission (465, 587)',
  },
  settings: {
    sender: senderSetting,
    recipient: recipientSetting,
    postmaster: {
      type: 'flag',
      default: true,
      doc: 'Whether the server must accept the recipient postmaster (Advanced), if recipient is not set',
    },
  },
  applies: ({ isSubmission }, settings) => settings.recipient === undefined && settings.postmaster && !isSubmission,
  observe: async (smtp, { sender: from = '' }) => ({
    address: smtp.address,
    ...(await offerRecipient(smtp, from, 'postmaster')),
  }),
  evaluate: ({ address, isSenderRefused, verdict, code, answer }) => {
    // The check `sender` says so.
    if (isSenderRefused) return []
    const message = `${address}: RCPT TO <postmaster> (no mail sent): ${answer}`
    if (verdict === 'accepted') return ok('postmaster', message)
    if (verdict === 'deferred') return ok('postmaster', `${message}; temporary: greylisting`)
    if (isSyntax(code)) return ok('postmaster', `${message}; it says nothing about mail for other addresses`)
    const why = causes[verdict] ?? '; it may refuse all mail: set recipient, or postmaster: false'
    return warn('postmaster', `${message}${why}`)
  },
})

/**
 * Whether a server refuses the form of a command, or its place: not every server knows an address without a domain, and
 * Haraka, OpenSMTPD and GreenMail answer so.
 */
const isSyntax = (code: number): boolean => (code >= 500 && code <= 504) || code === 555

/** `deferred`: the server asks the client to return later, as with greylisting. The others are faults of the server. */
type Verdict = 'accepted' | 'deferred' | 'full' | 'overQuota' | 'misconfigured' | 'troubled' | 'refused'

/** The enhanced status code at the beginning of a reply, e.g. `4.7.1` (RFC 3463). */
const enhancedCode = /^[245]\.\d{1,3}\.\d{1,3}(?!\S)/

/** Haraka says so with 450, the code of greylisting. */
const noSpace = /\b(?:insufficient|not enough|out of|no)\b.{0,20}\b(?:disk|storage|space)\b/i

/**
 * The meaning of a reply to MAIL FROM or RCPT TO. Of the temporary codes, only 450, 451, 4.2.x and 4.7.1 are those of
 * greylisting, except for 4.2.2, a mailbox that is full; 452 and 4.3.x come from the mail system itself and stop all
 * mail: 4.3.1 because it is full, 4.3.5 because its configuration is wrong, any other because of a fault that its log
 * names (RFC 3463, 3.3 and 3.4). 454 does not
 * mean greylisting whatever its enhanced code: Postfix refuses with `454 4.7.1 Relay access denied`.
 */
function verdictOf({ code, lines }: SmtpReply): Verdict {
  if (code === 250 || code === 251) return 'accepted'
  const [status = ''] = enhancedCode.exec(lines[0] ?? '') ?? []
  if (status === '4.3.5') return 'misconfigured'
  if (status.startsWith('4.3.') && status !== '4.3.1' && code !== 452) return 'troubled'
  if (status === '4.2.2') return 'overQuota'
  if (code === 452 || status === '4.3.1' || noSpace.test(lines.join(' '))) return 'full'
  if (code === 450 || code === 451) return 'deferred'
  return code !== 454 && (status.startsWith('4.2.') || status === '4.7.1') ? 'deferred' : 'refused'
}

function refused<Name extends 'sender' | 'recipient'>(name: Name, verdict: Verdict, message: string): Result<Name> {
  if (verdict === 'deferred')
    return warn(name, `${message}; temporary: greylisting, or the server cannot verify the address`)
  return fail(name, 'data', `${message}${causes[verdict] ?? ''}`)
}

/** The causes of refusals that concern the server itself or a mailbox, not the address: each continues the reply. */
const causes: Readonly<Partial<Record<Verdict, string>>> = {
  full: '; the server has no room or no resources for mail: look at its spool, its quota and its log',
  overQuota: '; the mailbox is full: its owner or its quota must make room',
  misconfigured: '; the server is misconfigured: its log names the setting',
  troubled: '; the mail system has a fault of its own: its log names it',
}

/** Ends a transaction without a mail. Returns a refusal, which a server must not give (RFC 5321, 4.1.1.5). */
async function askReset(smtp: SmtpConnection): Promise<string | undefined> {
  const reply = await smtp.ask('RSET')
  return reply.code === 250 ? undefined : `${smtp.address} refused RSET: ${smtp.quote(reply)}`
}

type Acceptance = {
  readonly verdict: Verdict
  readonly answer: string
  readonly code: number
  readonly reset?: string | undefined
  /** The server did not accept MAIL FROM, so it was offered no recipient. */
  readonly isSenderRefused?: true
}

/** Submits a recipient for verification, and then resets the transaction. Never sends DATA, so no mail is sent. */
async function offerRecipient(smtp: SmtpConnection, from: string, to: string): Promise<Acceptance> {
  const opened = await smtp.ask(`MAIL FROM:<${from}>`, 'MAIL FROM')
  const verdict = verdictOf(opened)
  if (verdict !== 'accepted') {
    return {
      verdict,
      code: opened.code,
      answer: `sender <${from}> not accepted: ${smtp.quote(opened)}`,
      isSenderRefused: true,
    }
  }
  const reply = await smtp.ask(`RCPT TO:<${to}>`, 'RCPT TO')
  const reset = await askReset(smtp)
  return { verdict: verdictOf(reply), code: reply.code, answer: smtp.quote(reply), reset }
}
