import { isIP } from 'node:net'

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
  const bare = text.replace(/^\[(.*)\]$/, '$1')
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
