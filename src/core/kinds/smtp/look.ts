import { quoted } from '../../net/text.ts'
import { ProbeError } from '../../probe-error.ts'
import type { Abilities, Talk } from './talk.ts'

/** Whether an account with a password can sign in, the better way first. */
export const methodsOf = (abilities: Abilities): readonly ('PLAIN' | 'LOGIN')[] =>
  (['PLAIN', 'LOGIN'] as const).filter((method) => abilities.get('AUTH')?.includes(method))

const packed = (text: string): string => Buffer.from(text, 'utf8').toString('base64')

/** What is said of a password: to be kept out of messages. */
export const credentialsOf = (username: string, password: string): readonly string[] => [
  password,
  packed(password),
  packed(`\0${username}\0${password}`),
]

/** Only under TLS. Throws ProbeError `auth` for a refusal, `data` where the server cannot tell for now. */
export async function signIn(talk: Talk, abilities: Abilities, username: string, password: string): Promise<void> {
  const [method] = methodsOf(abilities)
  if (method === undefined) {
    const offered = abilities.get('AUTH')?.join(' ') ?? ''
    throw new ProbeError(
      'data',
      `${talk.address} offers no sign-in by PLAIN or LOGIN${offered === '' ? '' : `, but ${quoted(offered, 80)}`}`,
    )
  }
  let reply = await talk.ask(method === 'PLAIN' ? `AUTH PLAIN ${packed(`\0${username}\0${password}`)}` : 'AUTH LOGIN')
  for (const [name, word] of method === 'LOGIN'
    ? [['the username', username] as const, ['the password', password] as const]
    : []) {
    if (reply.code === 334) reply = await talk.ask(packed(word), name)
  }
  if (reply.code === 235) return
  const told = `${talk.address} refused the sign-in of ${quoted(username, 64)}: ${talk.shown(reply)}`
  // 4xx: the server could not look at the password, so nobody has refused it.
  throw new ProbeError(reply.code >= 500 ? 'auth' : 'data', told)
}

export type Acceptance = { readonly accepted: 'yes' | 'not now' | 'no'; readonly told: string }

/** Has a recipient looked at, and takes it back. There is no DATA: no mail is sent. */
export async function askRecipient(talk: Talk, sender: string, recipient: string): Promise<Acceptance> {
  const from = await talk.ask(`MAIL FROM:<${sender}>`, 'MAIL FROM')
  if (from.code !== 250) {
    const told = `the sender <${sender}> was not accepted: ${talk.shown(from)}`
    return { accepted: from.code < 500 ? 'not now' : 'no', told }
  }
  const to = await talk.ask(`RCPT TO:<${recipient}>`, 'RCPT TO')
  await talk.ask('RSET')
  if (to.code === 250 || to.code === 251) return { accepted: 'yes', told: talk.shown(to) }
  return { accepted: to.code < 500 ? 'not now' : 'no', told: talk.shown(to) }
}
