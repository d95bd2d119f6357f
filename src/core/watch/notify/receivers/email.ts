import { createRedactor, quote, type Redact } from '../../../base/net/text.ts'
import { readTrust } from '../../../base/net/trust.ts'
import { hostOf, portOf } from '../../../base/net/url.ts'
import type { Problem, SettingsSpec, Values } from '../../../base/settings/index.ts'
import { humanTime } from '../../../base/zone.ts'
import type { Delivery, Notice, Receiver } from '../receiver.ts'
import type { ReceiverConfig } from '../settings.ts'
import { type ReceiverContext, receiverKind, receiverTrust } from './kind.ts'
import { headlineOf, keyOf, linesOf, messageDigest, withReceipt } from './message.ts'
import { failureOf } from './post.ts'
import { connectMail, type MailServer, mailAddress } from './smtp.ts'

const addressPattern = /^[^\s@<>,;:"()[\]\\]{1,64}@[^\s@<>,;:"()[\]\\]{1,253}$/
const settings = {
  server: {
    type: 'url',
    protocols: ['smtps', 'smtp'],
    required: true,
    doc: 'Mail server: `smtps://mail.internal` (TLS from the first byte, port 465) or `smtp://mail.internal:587` (STARTTLS where it is offered, port 25 by default)',
  },
  username: { type: 'text', doc: 'Account to sign in with; only over TLS, except on loopback' },
  password: { type: 'secret', doc: 'Password of the account' },
  from: { type: 'text', required: true, pattern: addressPattern, doc: 'Address of the sender: svc@example.com' },
  to: { type: 'texts', required: true, pattern: addressPattern, doc: 'Addresses of the recipients' },
  ...receiverTrust,
} as const satisfies SettingsSpec
type Settings = Values<typeof settings>

/** Incidents that a mail describes in full; of further ones it has the first line. */
const maxDescribed = 50
/** Incidents that a mail names; it counts further ones. */
const maxNamed = 2_000
/** Subjects in the header that says to which threads a mail belongs. */
const maxThreads = 20
/** Characters of the subject of a mail. */
const maxSubject = 200
/** Milliseconds for sending one mail. */
const sendMs = 30_000

export const email = receiverKind({
  name: 'email',
  doc: 'Mail, by SMTP; all mails about one check belong to one thread',
  settings,
  needsStore: true,
  mistakes,
  to: ({ server }) => `${new URL(server).protocol}//${addressOf(server)}`,
  target: ({ server }) => {
    const { host, port } = partsOf(server)
    return { host, port }
  },
  open: async (config, values, context) => {
    // A third of a second that no other command and no server without mail should wait.
    const [{ default: SMTPConnection }, { default: MailComposer }] = await Promise.all([
      import('nodemailer/lib/smtp-connection'),
      import('nodemailer/lib/mail-composer'),
    ])
    return new Email(config, values, context, { SMTPConnection, MailComposer })
  },
})

type Nodemailer = {
  readonly SMTPConnection: typeof import('nodemailer/lib/smtp-connection').default
  readonly MailComposer: typeof import('nodemailer/lib/mail-composer').default
}

const partsOf = (server: string): Pick<MailServer, 'host' | 'port' | 'isImplicit'> => {
  const url = new URL(server)
  const isImplicit = url.protocol === 'smtps:'
  return { host: hostOf(url), port: portOf(url, isImplicit ? 465 : 25), isImplicit }
}
const addressOf = (server: string): string => {
  const { host, port } = partsOf(server)
  return mailAddress(host, port)
}

function mistakes({ server, username, password, from, to }: Settings): readonly Problem[] {
  const problems: Problem[] = []
  const report = (path: Problem['path'], message: string): void => void problems.push({ path, message })
  const url = new URL(server)
  if (url.username !== '' || url.password !== '') {
    report(['server'], 'contains a user or a password: remove them, and set username and password')
  }
  if (!['', '/'].includes(url.pathname) || url.search !== '' || url.hash !== '') {
    report(['server'], 'contains more than host and port: write it like smtps://mail.internal')
  }
  if ((username === undefined) !== (password === undefined)) {
    report([username === undefined ? 'password' : 'username'], 'needs username and password together')
  }
  if (to.length === 0) report(['to'], 'is empty: give at least one address')
  for (const [index, address] of to.entries()) {
    if (sentAs(address) === undefined)
      report(['to', index], 'has a domain that no server can have: correct what follows @')
  }
  if (sentAs(from) === undefined) report(['from'], 'has a domain that no server can have: correct what follows @')
  return problems
}

/**
 * The address as servers take it: with its domain in ASCII (RFC 5891), unless the other part needs SMTPUTF8 (RFC 6531)
 * anyway. Undefined for a domain without that form.
 */
function sentAs(address: string): string | undefined {
  const at = address.lastIndexOf('@')
  if (!isAscii(address.slice(0, at))) return address
  const domain = isAscii(address) ? address.slice(at + 1) : URL.parse(`http://${address.slice(at + 1)}`)?.hostname
  return domain === undefined ? undefined : `${address.slice(0, at)}@${domain}`
}
const isAscii = (text: string): boolean => /^[ -~]*$/.test(text)

/** A mail that the server can never take. */
class UnsendableError extends Error {}

class Email implements Receiver {
  readonly #config: ReceiverConfig
  readonly #values: Settings
  readonly #context: ReceiverContext
  readonly #nodemailer: Nodemailer

  constructor(config: ReceiverConfig, values: Settings, context: ReceiverContext, nodemailer: Nodemailer) {
    this.#config = config
    this.#values = values
    this.#context = context
    this.#nodemailer = nodemailer
  }

  describe() {
    return { name: this.#config.name, kind: email.name, to: email.to(this.#values) }
  }

  async send(notices: readonly Notice[], stop: AbortSignal, id?: string): Promise<Delivery> {
    const { server: written, username, password, servername, caFile, fingerprint } = this.#values
    const [from = '', ...to] = [this.#values.from, ...this.#values.to].map((one) => sentAs(one) ?? one)
    const origin = addressOf(written)
    const signal = AbortSignal.any([stop, AbortSignal.timeout(sendMs)])
    const since = performance.now()
    let redact: Redact = (text) => String(text)
    const progress = { isSent: false }
    try {
      const { files } = this.#context
      const secret = await password?.reveal(files)
      redact = createRedactor(secret === undefined ? [] : [secret, Buffer.from(secret).toString('base64')])
      const server: MailServer = {
        origin,
        ...partsOf(written),
        signsIn: username !== undefined,
        hasTrust: servername !== undefined || caFile !== undefined || fingerprint !== undefined,
        trust: await readTrust(this.#values, files),
        servername,
      }
      const message = await this.#compose(notices, id, { from, to })
      if (this.#context.show) {
        this.#context.show(message.toString())
        return { what: 'accepted' }
      }
      const credentials = username === undefined || secret === undefined ? undefined : { user: username, pass: secret }
      const { rejected, response } = await this.#transfer(server, { message, credentials, from, to }, signal, progress)
      if (rejected.length > 0) {
        this.#context.warn(
          `${origin} refuses ${rejected.length} of ${to.length} recipients: ${quote(redact(rejected.join('; ')), 300)}`,
        )
      }
      return withReceipt(notices, { what: 'accepted' }, () => quote(redact(response), 200))
    } catch (error) {
      const refusal = refusalOf(error, origin, redact)
      if (refusal !== undefined && !signal.aborted) return refusal
      return failureOf(error, {
        origin,
        isSent: progress.isSent,
        stop,
        signal,
        ms: performance.now() - since,
        redact,
        limitMs: sendMs,
      })
    }
  }

  async close(): Promise<void> {}

  async #compose(
    notices: readonly Notice[],
    id: string | undefined,
    { from, to }: Pick<Settings, 'from' | 'to'>,
  ): Promise<Buffer> {
    const { isTest, now } = this.#context
    const domain = from.slice(from.lastIndexOf('@') + 1)
    const messageId = `<svc.${messageDigest(this.#config.name, notices, id)}@${domain}>`
    const threads = [...new Set(notices.map(({ subject }) => keyOf(subject, 32)))].slice(0, maxThreads)
    const references = threads.map((key) => `<svc.thread.${key}@${domain}>`)
    const [thread] = references
    const composer = new this.#nodemailer.MailComposer({
      from,
      to: [...to],
      subject: subjectOf(notices, this.#config, this.#context),
      text: isTest ? testText(notices) : textOf(notices, this.#config),
      messageId,
      date: new Date(now()),
      ...(isTest || thread === undefined ? {} : { inReplyTo: thread, references }),
      // Programs that answer mail must not answer these (RFC 3834).
      headers: { 'Auto-Submitted': 'auto-generated', 'X-Svc-Receiver': this.#config.name },
      disableFileAccess: true,
      disableUrlAccess: true,
    })
    return await composer.compile().build()
  }

  /** Sends a mail over a connection of its own. Rejects with the errors of nodemailer and of `connectMail`. */
  async #transfer(
    server: MailServer,
    mail: {
      readonly message: Buffer
      readonly credentials: { readonly user: string; readonly pass: string } | undefined
      readonly from: string
      readonly to: readonly string[]
    },
    signal: AbortSignal,
    progress: { isSent: boolean },
  ): Promise<{ readonly rejected: readonly string[]; readonly response: string }> {
    const socket = await connectMail(server, signal)
    const connection = new this.#nodemailer.SMTPConnection({
      connection: socket,
      secured: true,
      ignoreTLS: true,
      greetingTimeout: sendMs,
      socketTimeout: sendMs,
      logger: false,
    })
    const { promise: broken, reject: fail } = Promise.withResolvers<never>()
    broken.catch(() => {})
    connection.on('error', fail)
    connection.once('end', () => fail(new Error(`${server.origin} closed the connection`)))
    const stopped = (): void => fail(signal.reason as Error)
    signal.addEventListener('abort', stopped, { once: true })
    try {
      await Promise.race([broken, new Promise<void>((resolve) => connection.connect(() => resolve()))])
      const beyond = [mail.from, ...mail.to].find((address) => !isAscii(address))
      if (beyond !== undefined && !/[ -]SMTPUTF8\b/im.test(String(connection.lastServerResponse))) {
        const why = `${server.origin} does not offer SMTPUTF8, which ${quote(beyond, 100)} needs`
        throw new UnsendableError(`${why}: use an address with ASCII before the @`)
      }
      const { credentials } = mail
      if (credentials !== undefined) {
        await Promise.race([
          broken,
          new Promise<void>((resolve, reject) => {
            connection.login({ user: credentials.user, credentials }, (error) => (error ? reject(error) : resolve()))
          }),
        ])
      }
      progress.isSent = true
      const info = await Promise.race([
        broken,
        new Promise<{ readonly rejectedErrors?: readonly Error[] | undefined; readonly response?: string | undefined }>(
          (resolve, reject) => {
            const envelope = { from: mail.from, to: [...mail.to] }
            connection.send(envelope, mail.message, (error, sent) => (error ? reject(error) : resolve(sent)))
          },
        ),
      ])
      const rejected = (info.rejectedErrors ?? []).map(({ message }) => message)
      return { rejected, response: info.response ?? '' }
    } finally {
      signal.removeEventListener('abort', stopped)
      connection.quit()
      socket.destroySoon()
    }
  }
}

/** The delivery that follows from a reply of the server. Undefined for errors without a reply. */
function refusalOf(error: unknown, origin: string, redact: Redact): Delivery | undefined {
  if (error instanceof UnsendableError) return { what: 'refused', message: error.message, fault: 'data' }
  const { code, responseCode, response } = (error ?? {}) as {
    readonly code?: unknown
    readonly responseCode?: unknown
    readonly response?: unknown
  }
  if (typeof responseCode !== 'number' || responseCode < 400) {
    return code === 'EAUTH'
      ? { what: 'refused', message: `${origin} offers no way to sign in that svc knows`, fault: 'auth' }
      : undefined
  }
  const says = `: ${quote(redact(typeof response === 'string' ? response : String(responseCode)), 200)}`
  // A server that could not verify the password, or has no room for mail now, answers 4xx.
  if (responseCode < 500) {
    return {
      what: 'later',
      message: `${origin} does not accept the mail now${says}`,
      isPerhapsReceived: false,
      fault: 'protocol',
    }
  }
  return code === 'EAUTH'
    ? { what: 'refused', message: `${origin} refuses the sign-in${says}`, fault: 'auth' }
    : { what: 'refused', message: `${origin} refuses the mail${says}`, fault: 'data' }
}

/** `[prod] FAILED: Sql/postgres orders: connect: 10.0.0.7:5432 refused the connection` */
function subjectOf(
  notices: readonly Notice[],
  { details }: ReceiverConfig,
  { server, isTest }: ReceiverContext,
): string {
  if (isTest) return `[${server}] TEST of svc notify test: nothing has failed`
  return cut(`[${server}] ${headlineOf(notices, details)}`)
}

const cut = (text: string): string => (text.length > maxSubject ? `${text.slice(0, maxSubject - 1)}…` : text)

function textOf(notices: readonly Notice[], { details }: ReceiverConfig): string {
  const described = notices.slice(0, maxDescribed).map((notice) => linesOf(notice, details).join('\n'))
  const nameLines = notices.slice(maxDescribed, maxNamed).map((notice) => linesOf(notice, details)[0] ?? '')
  const more = notices.length - maxNamed
  const rest = [...nameLines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n')
  return `${[...described, ...(rest === '' ? [] : [rest])].join('\n\n')}\n`
}

const testText = ([notice]: readonly Notice[]): string =>
  notice === undefined
    ? ''
    : `This is a test of svc notify test. Nothing has failed.\n\n${notice.text}\nSent at ${humanTime(notice.observedAt, { zone: notice.timezone })}\n`
