/** The name styles of JSON answers. The interface uses PascalCase; current servers answer in camelCase. */
export const nameStyles = ['PascalCase', 'camelCase'] as const
/**
 * An answer can also be requested in snake_case. Requests are not read in it, so it cannot be the default of a server.
 */
export type NameStyle = (typeof nameStyles)[number] | 'snake_case'

/**
 * A member's name in that style. In PascalCase, names that the interface begins with a small letter keep it.
 *
 * @example
 * ```ts
 * inStyle('ServerType', 'camelCase') // 'serverType'
 * ```
 */
export function inStyle(name: string, style: NameStyle): string {
  if (style === 'PascalCase') return name
  if (style === 'camelCase') return name.charAt(0).toLowerCase() + name.slice(1)
  return name.replace(/(?<=[a-z0-9])[A-Z]/g, (letter) => `_${letter}`).toLowerCase()
}

/** The name options of `?jsconfig=`, long and short. All other options are ignored. */
const options: Readonly<Record<string, NameStyle>> = {
  emitcamelcasenames: 'camelCase',
  eccn: 'camelCase',
  emitlowercaseunderscorenames: 'snake_case',
  elun: 'snake_case',
  'textcase:pascalcase': 'PascalCase',
  'textcase:camelcase': 'camelCase',
  'textcase:snakecase': 'snake_case',
}

/**
 * The style that `?jsconfig=` requests (N9): `EmitCamelCaseNames`, `eccn:true`, `TextCase:CamelCase`. A disabled
 * option, such as `eccn:false`, requests the interface's names. Undefined without any name option.
 */
export function styleFrom(jsconfig: string): NameStyle | undefined {
  for (const part of jsconfig.toLowerCase().split(',')) {
    const [, option = '', flag] = /^\s*(textcase:\w+|\w+)(?::(true|false))?\s*$/.exec(part) ?? []
    const style = Object.hasOwn(options, option) ? options[option] : undefined
    if (style !== undefined) return flag === 'false' ? 'PascalCase' : style
  }
  return undefined
}

/**
 * Converts the members of parsed JSON to the interface's names, from any style: `statusMessage` and `status_message`
 * become StatusMessage. Of two members with the same name, the last one wins.
 *
 * @example
 * ```ts
 * inPascalCase({ userName: 'ann' }) // { UserName: 'ann' }
 * ```
 */
export function inPascalCase(json: unknown): unknown {
  if (Array.isArray(json)) return json.map(inPascalCase)
  if (typeof json !== 'object' || json === null) return json
  const entries = Object.entries(json).map(([name, value]) => [pascal(name), inPascalCase(value)])
  return Object.fromEntries(entries)
}

const pascal = (name: string): string => name.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())

/**
 * Text conventions for what the interface has no field for, so that a reader can recover it: the interface has two
 * states and no fault class.
 */

/** A warning is Success on the wire. This prefix of its StatusMessage distinguishes it from an ok. */
export const warningPrefix = 'warning: '
/** The last of a failed result's ErrorMessages names its fault class, e.g. `fault: refused`. */
export const faultPrefix = 'fault: '

/**
 * The warning in the StatusMessage of a Success. Undefined without one.
 *
 * @example
 * ```ts
 * warningIn('warning: 81 % used') // '81 % used'
 * ```
 */
export const warningIn = (statusMessage: string): string | undefined =>
  statusMessage.startsWith(warningPrefix) ? statusMessage.slice(warningPrefix.length) : undefined

/**
 * The fault class that the last ErrorMessages entry of a Failure names. Undefined without one.
 *
 * @example
 * ```ts
 * faultIn('timeout') // undefined
 * ```
 */
export const faultIn = (errorMessage: string): string | undefined =>
  errorMessage.startsWith(faultPrefix) ? errorMessage.slice(faultPrefix.length) : undefined
