import { isLoopback } from '../../../base/loopback.ts'
import { quote } from '../../../base/net/text.ts'
import { ProbeError, refusedSignIn } from '../../../base/probe-error.ts'
import { type FtpLink, type FtpReply, wait, waitForSignIn } from './control.ts'

/** Whether svc may send a password to an address: in clear text only on loopback, or if the settings allow it. */
export const maySendPassword = (ip: string, isEncrypted: boolean, insecureFtp: boolean): boolean =>
  isEncrypted || insecureFtp || isLoopback(ip)

/**
 * Servers at their session limit use the same code as for a wrong password. This must not be reported as a fault of the
 * account.
 */
const full = /too many|maximum|limit (?:is )?reached|try (?:again )?later/i
const requiresTls = /\b(?:TLS|SSL|encrypt(?:ed|ion)?|secure)\b/i

/**
 * Signs in, and requests encrypted data connections if the control connection is encrypted. Throws ProbeError: `auth`
 * only for a refused sign-in.
 */
export async function signIn(link: FtpLink, username: string, password: string): Promise<void> {
  const { control, context } = link
  const user = await control.ask(`USER ${username}`, wait(context))
  if (user.code === 331) {
    const pass = await control.ask(`PASS ${password}`, waitForSignIn(context))
    if (pass.code !== 230 && pass.code !== 202) throw refused(link, pass, username)
  } else if (user.code !== 230 && user.code !== 232) throw refused(link, user, username)
  if (link.tls) {
    await expected(link, 'PBSZ 0', [200])
    const protect = await control.ask('PROT P', wait(context))
    if (protect.code !== 200) {
      throw new ProbeError('tls', `${control.address} does not encrypt data connections: ${control.display(protect)}`)
    }
  }
  await expected(link, 'TYPE I', [200])
}

function refused({ control, tls, redact }: FtpLink, reply: FtpReply, username: string): ProbeError {
  const description = control.display(reply)
  const who = `"${redact(username).slice(0, 64)}"`
  if (reply.code === 332)
    return new ProbeError('protocol', `${control.address} requires ACCT for ${who}, which svc does not support`)
  if (!tls && requiresTls.test(reply.text)) {
    return new ProbeError('tls', `${control.address} requires TLS to sign in: ${description}`, ['next: tls: explicit'])
  }
  if (full.test(reply.text))
    return new ProbeError('refused', `${control.address} accepts no more sessions: ${description}`)
  if (reply.code === 530 || reply.code === 430 || reply.code === 331 || reply.code === 532) {
    return refusedSignIn(control.address, who, description)
  }
  return new ProbeError('protocol', `${control.address} answered the sign-in of ${who} with ${description}`)
}

/** Sends a command and requires one of the given reply codes. */
export async function expected(link: FtpLink, command: string, codes: readonly number[]): Promise<FtpReply> {
  const { control, context } = link
  const reply = await control.ask(command, wait(context))
  if (codes.includes(reply.code)) return reply
  const name = command.split(' ', 1)[0] ?? ''
  throw new ProbeError(faultOf(reply), `${control.address} answered ${name} with ${control.display(reply)}`)
}

/** Changes to a folder. Names it in the ProbeError, because some servers do not (vsftpd). */
export async function changeFolder(link: FtpLink, folder: string): Promise<void> {
  const { control, context, redact } = link
  const reply = await control.ask(`CWD ${folder}`, wait(context))
  if (reply.code === 200 || reply.code === 250) return
  const answer = `${control.address} answered CWD ${quote(redact(folder), 100)} with ${control.display(reply)}`
  throw new ProbeError(faultOf(reply), answer)
}

/** A refusal shows that the server understood the command (`data`); any other reply is a protocol error. */
export const faultOf = (reply: FtpReply): 'data' | 'protocol' =>
  [450, 451, 452, 532, 550, 551, 552, 553].includes(reply.code) ? 'data' : 'protocol'

/** The folder of a 257 reply, or undefined. Quotation marks in it are doubled (RFC 959, appendix II). */
export function folderOf(reply: FtpReply): string | undefined {
  const quotedPath = /^257 "((?:[^"]|"")*)"/.exec(reply.text)?.[1]
  // A later CWD sends this path back.
  return quotedPath === undefined || quotedPath === '' || /\p{Cc}/u.test(quotedPath)
    ? undefined
    : quotedPath.replaceAll('""', '"')
}
