import { isIP } from 'node:net'
import { bareHost } from '../loopback.ts'
import type { SecretForm } from './setting.ts'

/** Mistakes in texts that can be recognized before anything connects. Each message completes the path of a setting. */

/** A variable of a shell, of Windows or of a template, which svc does not replace. */
const variable = /\$\{[^{}]*\}|\$[A-Za-z_]\w*|\{\{[^{}]*\}\}|%[A-Za-z_]\w*%/

/** The message for a text with a variable, or undefined. The variable itself is not a secret. */
export function variableMistake(text: string): string | undefined {
  const [written] = variable.exec(text) ?? []
  if (written === undefined) return undefined
  const excerpt = written.length > 40 ? `${written.slice(0, 39)}…` : written
  return `contains the variable ${excerpt}, which svc does not replace: write the value itself`
}

/** The message for a text that is nothing but a variable, or undefined. */
export const onlyVariableMistake = (text: string): string | undefined =>
  variable.exec(text)?.[0] === text ? variableMistake(text) : undefined

/**
 * The message for a text that is neither a host name nor an address, or undefined.
 *
 * @example
 * ```ts
 * hostMistake('db1.example.com') // undefined
 * ```
 */
export function hostMistake(text: string): string | undefined {
  const bare = bareHost(text)
  if (isIP(bare) !== 0) return undefined
  const mistake = variableMistake(text)
  if (mistake !== undefined) return mistake
  const url = text.includes('://') ? URL.parse(text) : null
  if (url !== null && url.hostname !== '') return `is a URL: write only its host, ${url.hostname}`
  const [, host, port] = /^([^:/\s@]+):(\d{1,5})$/.exec(text) ?? []
  if (host !== undefined) return `contains a port: write \`host: ${host}\` and \`port: ${port}\``
  if (/^[\p{L}\p{M}\p{N}_](?:[\p{L}\p{M}\p{N}_.。．｡-]{0,252})$/u.test(text)) return undefined
  return 'is not a host: write a name or an address without scheme, port, path or blanks, like db1.internal or 10.0.0.7'
}

/** The message for a text with a line break, which would end the line of a protocol that it is sent in. */
export const lineMistake = (text: string): string | undefined =>
  /[\r\n\0]/.test(text) ? 'contains a line break, which its protocol cannot send: write it on one line' : undefined

/**
 * The message for a text that cannot be the name of a header (RFC 9110, 5.6.2), or undefined.
 *
 * @example
 * ```ts
 * headerNameMistake('X-Trace') // undefined
 * ```
 */
export function headerNameMistake(name: string): string | undefined {
  const [character] = /[^!#$%&'*+.^_`|~\dA-Za-z-]/u.exec(name) ?? []
  if (name !== '' && character === undefined) return undefined
  return `is not the name of a header: write letters, digits and -, ${character === undefined ? 'at least one' : `without ${JSON.stringify(character)}`}`
}

/** The message for a text that cannot be the value of a header (RFC 9110, 5.5), or undefined. */
export function headerValueMistake(value: string): string | undefined {
  const [character] = /[^\t\x20-\x7e\x80-\xff]/u.exec(value) ?? []
  return character === undefined
    ? undefined
    : `contains ${JSON.stringify(character)}, which the value of a header cannot: write it on one line, in Latin letters`
}

/** Why a secret cannot be what it has to be, without showing any of it: words that follow its name. Undefined if it can. */
export function secretMistake(secret: string, form: SecretForm | undefined): string | undefined {
  if (form === undefined) return undefined
  if (form === 'private key')
    return /PRIVATE KEY-----|^PuTTY-User-Key-File/.test(secret)
      ? undefined
      : `whose value is not a private key: ${willFail}`
  const mistake = form === 'header' ? headerValueMistake(secret) : lineMistake(secret)
  return mistake === undefined ? undefined : `whose value has a character that a ${form} cannot contain: ${willFail}`
}

/** The consequence, in a warning about a secret or a file. */
export const willFail = 'checks that need it will fail'

/** The message for a header that cannot be sent, or undefined. */
export const headerMistake = (value: string, name: string): string | undefined =>
  headerNameMistake(name) ?? headerValueMistake(value)

/** Names of headers are the same in every case. */
export const sameHeader = (name: string): string => name.toLowerCase()

/**
 * The message for a text that DNS cannot look up, because a part of it is empty or too long (RFC 1035, 2.3.4), or
 * undefined.
 *
 * @example
 * ```ts
 * dnsNameMistake('db1.internal') // undefined
 * ```
 */
export function dnsNameMistake(text: string): string | undefined {
  const name = text.replace(/\.$/, '')
  const isRight = text === '.' || (name.length <= 253 && name.split('.').every((part) => /^.{1,63}$/s.test(part)))
  return isRight ? undefined : 'is not a name of DNS: write parts of 1 to 63 characters with one dot between two'
}

/**
 * The message for a text that no status of HTTP matches, or undefined.
 *
 * @example
 * ```ts
 * statusMistake('2xx') // undefined
 * ```
 */
export function statusMistake(text: string): string | undefined {
  const entry = text.replaceAll(' ', '')
  const [, from = '', to = from] = /^(\d{3})(?:-(\d{3}))?$/.exec(entry) ?? []
  const [, below = ''] = /^<(\d{3})$/.exec(entry) ?? []
  const isRange = from !== '' && Number(from) >= 100 && Number(from) <= Number(to) && Number(from) <= 599
  if (isRange || /^[1-5]xx$/i.test(entry) || Number(below) > 100) return undefined
  return `is ${JSON.stringify(text.slice(0, 20))}, which no answer has: write 200, 2xx, 200-299 or <500`
}
