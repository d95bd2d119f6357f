import { eachAddress, evaluateUnreached, includes, monitorKind, type Unreached } from '../../engine/index.ts'
import { evaluateSmtp } from './judge.ts'
import { isImplicit, smtpSettings, validate } from './settings.ts'
import { type Seen, visitSmtp } from './visit.ts'

/** Talks to a mail server and hangs up. Sends no mail: it never says DATA. */
export default monitorKind({
  name: 'smtp',
  title: 'A mail server (SMTP) takes mail; none is sent',
  settings: smtpSettings,
  checks: [
    { name: 'banner', depth: 'Basic', doc: 'The server says that it is ready, in time' },
    { name: 'TLS', depth: 'Basic', doc: 'It is who it should be; in Basic only where TLS comes first (port 465)' },
    { name: 'hello', depth: 'Standard', doc: 'It takes EHLO and says what it can do' },
    { name: 'certificate', depth: 'Standard', doc: 'Every certificate of the chain stays valid long enough' },
    {
      name: 'authentication',
      depth: 'Standard',
      doc: 'It takes no passwords before TLS; left out where it takes none',
    },
    { name: 'size', depth: 'Standard', doc: 'Messages may be large enough; left out without `size`' },
    { name: 'sign-in', depth: 'Standard', doc: 'The account is let in; left out without `username`' },
    {
      name: 'recipient',
      depth: 'Advanced',
      doc: 'An address is accepted, and taken back; left out without `recipient`',
    },
  ],
  target: ({ host, port }) => ({ host, port }),
  signsIn: ({ username }, mode) => username !== undefined && includes(mode, 'Standard'),
  validate,
  async *observe(settings, context): AsyncGenerator<Seen | Unreached> {
    const { host, port } = settings
    const check = isImplicit(settings) ? 'TLS' : 'banner'
    yield* eachAddress<Seen>(context, { host, port, which: 'any', check }, (at) => visitSmtp(at, settings, context))
  },
  evaluate: (seen, settings) => (seen.see === 'unreached' ? evaluateUnreached(seen) : evaluateSmtp(seen, settings)),
})
