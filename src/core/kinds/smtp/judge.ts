import { atMost, evaluateExpiry, fail, ok, type Result, warn } from '../../engine/index.ts'
import { showBytes } from '../../format.ts'
import { said } from '../../net/text.ts'
import type { SmtpSettings } from './settings.ts'
import type { Seen } from './visit.ts'

export function evaluateSmtp(seen: Seen, settings: SmtpSettings): Result | readonly Result[] {
  switch (seen.see) {
    case 'banner':
      return evaluateBanner(seen, settings)
    case 'TLS':
      return evaluateTls(seen, settings)
    case 'no TLS': {
      const { address, loopback } = seen
      const told = `${address} does not offer STARTTLS: mail and passwords would go in the clear`
      return loopback
        ? ok('TLS', `${address} does not offer STARTTLS (this machine)`, { address })
        : warn('TLS', told, { address })
    }
    case 'hello': {
      const { address, abilities } = seen
      const told = abilities.length === 0 ? 'nothing beyond the basics' : said(abilities.join(', '), 200)
      return ok('hello', `${address} can do ${told}`, { address })
    }
    case 'authentication':
      return evaluateAuthentication(seen)
    case 'signed in':
      return ok('sign-in', `${seen.address} let ${said(settings.username ?? '', 64)} in`, { address: seen.address })
    case 'size':
      return evaluateSize(seen, settings.size ?? 0)
    case 'recipient':
      return evaluateRecipient(seen, settings)
  }
}

type See<S extends Seen['see']> = Extract<Seen, { readonly see: S }>

function evaluateBanner({ address, code, told, ms }: See<'banner'>, settings: SmtpSettings): Result {
  if (code === 220) {
    const what = `${address} said ${told} in`
    return atMost({ check: 'banner', what, value: ms, unit: 'duration', threshold: settings.latency, address })
  }
  const why =
    code === 554 ? 'it serves no mail, or not from here' : code === 421 ? 'it is not available now' : 'expected 220'
  return fail('banner', code >= 400 ? 'refused' : 'protocol', `${address} said ${told}: ${why}`, { address })
}

function evaluateTls({ chain, distrust, days }: See<'TLS'>, settings: SmtpSettings): readonly Result[] {
  const { address } = chain
  if (distrust !== undefined) return [fail('TLS', 'tls', distrust, { address })]
  return [
    ok('TLS', `${address} speaks ${chain.protocol}, and is ${said(chain.host, 100)}`, { address }),
    ...(days ? [evaluateExpiry('certificate', chain, settings.certificate)] : []),
  ]
}

/** Left out where nobody may sign in: a server that only takes mail needs none. */
function evaluateAuthentication({ address, methods, inClear }: See<'authentication'>): readonly Result[] {
  const check = 'authentication'
  if (inClear) return [warn(check, `${address} offers to take passwords before TLS, in the clear`, { address })]
  return methods.length === 0 ? [] : [ok(check, `${address} offers ${said(methods.join(' '), 100)}`, { address })]
}

function evaluateSize({ address, size }: See<'size'>, least: number): Result {
  if (size === undefined) return ok('size', `${address} names no limit for the size of a message`, { address })
  const more: Partial<Result> = { address, measurement: { value: size, unit: 'bytes', limit: least } }
  const told = `${address} takes messages up to ${showBytes(size)} (at least ${showBytes(least)})`
  return size < least ? fail('size', 'threshold', told, more) : ok('size', told, more)
}

function evaluateRecipient({ address, accepted, told }: See<'recipient'>, { recipient = '' }: SmtpSettings): Result {
  const message = `${address}, asked for ${said(recipient, 100)} (nothing was sent): ${told}`
  if (accepted === 'yes') return ok('recipient', message, { address })
  if (accepted === 'no') return fail('recipient', 'data', message, { address })
  return warn('recipient', `${message}; for now: greylisting, or it cannot look`, { address })
}
