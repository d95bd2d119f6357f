import { quote, type Redact } from '../../../base/net/text.ts'
import { type FaultClass, ProbeError, RefusedSignInError } from '../../../base/probe-error.ts'
import type { LdapResult } from './message.ts'

/** The request that a result code answers. */
export type LdapRequest = {
  readonly address: string
  readonly doing: 'StartTLS' | 'bind' | 'search'
  /** The account that signs in; undefined for an anonymous request. */
  readonly user: string | undefined
  /** The requested entry. */
  readonly base?: string
  readonly redact: Redact
  /** The error in the password policy control of the answer. */
  readonly policyError?: number | undefined
}

type Meaning = readonly [fault: FaultClass, words: string]

/** The result codes of RFC 4511, appendix A, explained for operators. */
const meanings: Readonly<Record<number, Meaning>> = {
  1: ['data', 'refused it in this state (operationsError): often a search before a sign-in'],
  2: ['protocol', 'did not understand the request (protocolError)'],
  3: ['timeout', 'exceeded its time limit (timeLimitExceeded)'],
  4: ['data', 'found more entries than it returns (sizeLimitExceeded)'],
  7: ['data', 'does not support this type of sign-in (authMethodNotSupported)'],
  8: ['data', 'requires a stronger sign-in: TLS or signing (strongerAuthRequired)'],
  10: ['data', 'refers to another server, which svc does not query (referral)'],
  11: ['data', 'reached an administrative limit (adminLimitExceeded)'],
  13: ['data', 'requires encryption: use ldaps:// or startTls (confidentialityRequired)'],
  32: ['data', 'has no such entry (noSuchObject)'],
  34: ['data', 'does not accept that as a distinguished name (invalidDNSyntax)'],
  48: [
    'auth',
    'does not accept this type of sign-in for the account, which may have no password (inappropriateAuthentication)',
  ],
  49: ['auth', 'refused the name or the password (invalidCredentials)'],
  50: ['data', 'denies access to this account (insufficientAccessRights)'],
  51: ['refused', 'is too busy (busy)'],
  52: ['refused', 'is shutting down or its data is offline (unavailable)'],
  53: ['data', 'is unwilling to perform the request (unwillingToPerform)'],
  80: ['protocol', 'failed internally (other)'],
}

/** The sub-codes that Active Directory adds to code 49: `AcceptSecurityContext error, data 52e`. */
const directoryMeanings: Readonly<Record<string, string>> = {
  '525': 'there is no such user',
  '52e': 'wrong password',
  '530': 'the account may not sign in at this hour',
  '531': 'the account may not sign in from here',
  '532': 'the password has expired',
  '533': 'the account is disabled',
  '701': 'the account has expired',
  '773': 'the password must be changed first',
  '775': 'the account is locked',
}

/** The errors of the password policy control (draft-behera-ldap-password-policy), as OpenLDAP and 389-ds send them. */
const policyErrors: Readonly<Record<number, string>> = {
  0: 'the password has expired',
  1: 'the account is locked',
  2: 'the password must be changed first',
}

/** Why the password policy refuses an account; undefined for codes that a sign-in does not have. */
export const policyReason = (error: number | undefined): string | undefined =>
  error === undefined ? undefined : policyErrors[error]

/** The sub-code of Active Directory in a server's text, in lower case. */
export const subCode = (text: string): string | undefined => /\bdata ([0-9a-f]{1,8})\b/i.exec(text)?.[1]?.toLowerCase()

/** The reason for refusing an account, if it is not the password; undefined if it is unknown. */
export function otherReason({ details }: Pick<ProbeError, 'details'>): string | undefined {
  if (details.includes(resultDetail(inappropriateAuthentication))) return 'it may have no password (result 48)'
  const code = subCode(details.join(' '))
  return code === undefined || code === '52e' ? undefined : directoryMeanings[code]
}

const inappropriateAuthentication = 48
const resultDetail = (code: number): string => `LDAP result ${code}`

type ExplainedResult = { readonly fault: FaultClass; readonly words: string; readonly details: readonly string[] }

/** Characters of a server's text in the first line of a message. */
const maxReasonLength = 120

/**
 * Explains a result code, in words that follow `it`. They end with the text of the server, which often names the cause
 * that the code leaves open; the texts of Active Directory have codes only and become a detail.
 */
export function meaningOf({ code, text }: LdapResult, redact: Redact): ExplainedResult {
  const [fault, words] = meanings[code] ?? ['protocol', `answered with code ${code}`]
  const reason = redact(text)
  const details = [resultDetail(code)]
  if (reason === '') return { fault, words, details }
  const isShown = subCode(text) === undefined && !text.includes('DSID-') && reason.length <= maxReasonLength
  return isShown
    ? { fault, words: `${words}: ${quote(reason, maxReasonLength)}`, details }
    : { fault, words, details: [...details, `the server sent ${quote(reason)}`] }
}

/** Explains a result code as the answer to a request. */
export function resultFault(result: LdapResult, request: LdapRequest): ProbeError {
  const { address, doing, user, base = '', redact } = request
  const { fault, words, details } = meaningOf(result, redact)
  const as = user === undefined ? 'without an account' : `as ${quote(user, 120)}`
  if (doing === 'StartTLS') return new ProbeError('tls', `${address} refused StartTLS: it ${words}`, details)
  if (doing === 'bind') {
    const sub = result.code === 49 ? subCode(result.text) : undefined
    const policy = policyReason(request.policyError)
    const cause = (sub === undefined ? undefined : directoryMeanings[sub]) ?? policy
    const why = cause ?? `it ${words}`
    const message = `${address} refused the sign-in ${as}: ${why}`
    // 389-ds refuses locked accounts with the code for anything that it does not want to do.
    if (fault !== 'auth' && policy === undefined) return new ProbeError(fault, message, details)
    const reason = cause === undefined && result.code === 49 ? 'wrong name or password (invalidCredentials)' : why
    return new RefusedSignInError(message, reason, details)
  }
  const what = base === '' ? 'its root entry' : quote(base, 120)
  return new ProbeError(fault, `${address}: search for ${what} ${as}: the server ${words}`, details)
}
