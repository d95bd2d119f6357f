import {
  atLeast,
  atMost,
  type CheckContext,
  certificateSetting,
  evaluateExpiry,
  fail,
  includes,
  ok,
  type Result,
  warn,
} from '../../engine/index.ts'
import { quote, sanitize } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import type { Threshold } from '../../settings/index.ts'
import {
  base64,
  connectLatency,
  onSmtp,
  plainCredentials,
  type SmtpBanner,
  type SmtpConnection,
  type SmtpEncryption,
  usernameSetting,
} from './connection.ts'
import type { Extensions } from './session.ts'

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
  return fail('banner', code >= 400 ? 'refused' : 'protocol', `${address} sent ${text}: ${why}`)
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
  settings: {},
  gate: true,
  observe: observeTransport,
  evaluate: ({ address, loopback, clear, encryption }): Result<'TLS'> | [] => {
    if (clear && loopback) return ok('TLS', `${address} does not offer STARTTLS (this machine)`)
    if (clear) return warn('TLS', `${address} does not offer STARTTLS: mail and passwords would be sent unencrypted`)
    if (!encryption) return []
    const { chain, distrust } = encryption
    if (distrust !== undefined) return fail('TLS', 'tls', distrust)
    return ok('TLS', `${address} speaks ${chain.protocol} with a trusted certificate for ${sanitize(chain.host, 100)}`)
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
  settings: {},
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
  results: { authentication: 'The server does not accept passwords before TLS; omitted if it accepts none at all' },
  settings: {},
  observe: async (smtp) => ({
    address: smtp.address,
    methods: (await smtp.extensions()).get('AUTH') ?? [],
    inClear: smtp.extensionsInClear !== undefined && passwordMethods(smtp.extensionsInClear).length > 0,
  }),
  evaluate: ({ address, methods, inClear }): Result<'authentication'> | [] => {
    if (inClear) return warn('authentication', `${address} accepts passwords before TLS, unencrypted`)
    // A server that only accepts mail needs no sign-in.
    return methods.length === 0 ? [] : ok('authentication', `${address} offers ${sanitize(methods.join(' '), 100)}`)
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
  const message = `${address} refused the sign-in of ${quote(username, 64)}: ${smtp.quote(reply)}`
  // A 4xx reply means that the server could not verify the password, so this is no refusal.
  throw smtp.end(new ProbeError(reply.code >= 500 ? 'auth' : 'data', message))
}

export const recipient = onSmtp({
  depth: 'Advanced',
  results: {
    recipient: 'The server accepts the recipient; svc then resets the transaction; omitted without `recipient`',
  },
  settings: {
    sender: { type: 'text', doc: 'Address of MAIL FROM; default: empty, as in a bounce' },
    recipient: {
      type: 'text',
      doc: 'Address that the server must accept (Advanced): svc sends RCPT TO, then RSET, and never a mail',
    },
  },
  applies: (_, settings) => settings.recipient !== undefined,
  observe: async (smtp, { sender = '', recipient: to = '' }) => ({
    address: smtp.address,
    ...(await offerRecipient(smtp, sender, to)),
  }),
  evaluate: ({ address, accepted, answer }, { recipient: to = '' }) => {
    const message = `${address}: RCPT TO ${sanitize(to, 100)} (no mail sent): ${answer}`
    if (accepted === 'yes') return ok('recipient', message)
    if (accepted === 'no') return fail('recipient', 'data', message)
    return warn('recipient', `${message}; temporary: greylisting, or the server cannot verify it`)
  },
})

type Acceptance = { readonly accepted: 'yes' | 'not now' | 'no'; readonly answer: string }

/** Submits a recipient for verification, and then resets the transaction. Never sends DATA, so no mail is sent. */
async function offerRecipient(smtp: SmtpConnection, sender: string, to: string): Promise<Acceptance> {
  const from = await smtp.ask(`MAIL FROM:<${sender}>`, 'MAIL FROM')
  if (from.code !== 250) {
    const answer = `sender <${sender}> not accepted: ${smtp.quote(from)}`
    return { accepted: from.code < 500 ? 'not now' : 'no', answer }
  }
  const reply = await smtp.ask(`RCPT TO:<${to}>`, 'RCPT TO')
  await smtp.ask('RSET')
  const answer = smtp.quote(reply)
  if (reply.code === 250 || reply.code === 251) return { accepted: 'yes', answer }
  return { accepted: reply.code < 500 ? 'not now' : 'no', answer }
}
