import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

export type SmtpPeer = {
  readonly port: number
  /** The requests that it got, e.g. `AUTH PLAIN monitor`, `MAIL a@b`, `RCPT c@d`, `DATA`. */
  readonly requests: readonly string[]
  /** How many connections are open. */
  readonly open: () => number
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

export const smtpAccount = { username: 'monitor', password: 'correct-horse-9' }

/** `authInClear`: it offers the sign-in before TLS too. */
export type SmtpOptions = SMTPServerOptions & { readonly authInClear?: boolean }

/** A real SMTP server (smtp-server) on a free port of 127.0.0.1 that takes mail for accepted@svc.test only. */
export async function startSmtp({ authInClear = false, ...options }: SmtpOptions = {}): Promise<SmtpPeer> {
  const requests: string[] = []
  const refuse = (responseCode: number, message: string): Error => Object.assign(new Error(message), { responseCode })
  let open = 0
  const server = new SMTPServer({
    name: 'mail.svc.test',
    disableReverseLookup: true,
    authOptional: true,
    closeTimeout: 100,
    logger: false,
    onConnect: (session, done) => {
      open += 1
      if (!authInClear && !options.secure) Object.assign(session, { disabledCommands: ['AUTH'] })
      done()
    },
    onSecure: (_, session, done) => {
      Object.assign(session, { disabledCommands: [] })
      done()
    },
    onClose: () => {
      open -= 1
    },
    onAuth: (auth, _, done) => {
      requests.push(`AUTH ${auth.method} ${auth.username}`)
      if (auth.username === 'busy') return done(refuse(454, 'Temporary authentication failure'))
      const right = auth.username === smtpAccount.username && auth.password === smtpAccount.password
      if (right) done(null, { user: auth.username })
      else done(refuse(535, `Authentication failed for ${auth.password}`))
    },
    onMailFrom: (address, _, done) => {
      requests.push(`MAIL ${address.address}`)
      done()
    },
    onRcptTo: (address, _, done) => {
      requests.push(`RCPT ${address.address}`)
      if (address.address.startsWith('accepted@')) done()
      else if (address.address.startsWith('later@')) done(refuse(450, 'Greylisted, try again'))
      else done(refuse(550, 'No such user here'))
    },
    onData: (stream, _, done) => {
      requests.push('DATA')
      stream.resume()
      stream.once('end', () => done())
    },
    ...options,
  })
  server.on('error', () => {})
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  return {
    port: (server.server.address() as AddressInfo).port,
    requests: requests,
    open: () => open,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}
