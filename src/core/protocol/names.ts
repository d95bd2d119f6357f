/** How members of JSON answers are spelled. The interface says PascalCase; servers of today's make answer in camelCase. */
export const nameStyles = ['PascalCase', 'camelCase'] as const
/** One answer may also be asked for in snake_case; requests are not read in it, so that no server speaks it. */
export type NameStyle = (typeof nameStyles)[number] | 'snake_case'

/** A member's name in that style. What the interface itself begins with a small letter stays so in PascalCase. */
export function inStyle(name: string, style: NameStyle): string {
  if (style === 'PascalCase') return name
  if (style === 'camelCase') return name.charAt(0).toLowerCase() + name.slice(1)
  return name.replace(/(?<=[a-z0-9])[A-Z]/g, (letter) => `_${letter}`).toLowerCase()
}

/** The options of `?jsconfig=` that are about names, long and short; whatever else it says is passed over. */
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
 * N9: what `?jsconfig=` asks for: `EmitCamelCaseNames`, `eccn:true`, `TextCase:CamelCase`. One that is turned off,
 * `eccn:false`, asks for the interface's names. Undefined when it says nothing of names.
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
 * Parsed JSON with its members as the interface spells them, whatever the style of who wrote it: `statusMessage`
 * and `status_message` are StatusMessage. Of two that become one the last counts.
 */
export function inPascalCase(json: unknown): unknown {
  if (Array.isArray(json)) return json.map(inPascalCase)
  if (typeof json !== 'object' || json === null) return json
  const entries = Object.entries(json).map(([name, value]) => [pascal(name), inPascalCase(value)])
  return Object.fromEntries(entries)
}

const pascal = (name: string): string => name.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())

/**
 * What the interface has no field for and this service says in its text, so that a reader can tell
 * it again: the interface knows two states and no fault class.
 */

/** A warning is Success on the wire; this prefix of StatusMessage tells it from an ok. */
export const warningPrefix = 'warning: '
/** The last of a failed result's ErrorMessages names its fault class, e.g. `fault: refused`. */
export const faultPrefix = 'fault: '

/** What a StatusMessage of Success warns of; undefined where it warns of nothing. */
export const warningIn = (statusMessage: string): string | undefined =>
  statusMessage.startsWith(warningPrefix) ? statusMessage.slice(warningPrefix.length) : undefined

/** The fault class that the last ErrorMessages entry of a Failure names; undefined where it names none. */
export const faultIn = (errorMessage: string): string | undefined =>
  errorMessage.startsWith(faultPrefix) ? errorMessage.slice(faultPrefix.length) : undefined
