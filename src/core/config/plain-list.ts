const member = /([A-Za-z]+): (\[?)/y
/** A word, or a text in quotes on one line, that stands for itself. */
const plain = /([A-Za-z](?:[\w./-]|:(?=[\w./-]))*|'[ -&(-~]*'|"[ !#-[\]-~]*")(\]?)(, |$)/y
const entry = /^( *)(- | {2})(?! )(\{?)(.*?)(\}?)$/
const nothing = /^ *(?:#[ -~]*)?$/
/** Words that YAML reads as another value than a text. */
const reserved = /^(?:null|true|false)$/i

type Entry = Record<string, unknown>

/**
 * The value of a file in YAML with nothing but a list of maps of texts under one name, each map in braces on a line or
 * with a line for each of its members. Undefined for every other file, also one with a mistake. Takes a tenth of the time
 * of the parser.
 *
 * @example
 * ```ts
 * plainListOf('servers', "servers:\n  - {name: a, url: 'https://a'}\n") // { servers: [{ name: 'a', url: 'https://a' }] }
 * plainListOf('servers', 'servers:\n  - {name: null}\n') // undefined
 * ```
 */
export function plainListOf(name: string, text: string): Readonly<Record<string, readonly Entry[]>> | undefined {
  const written = text.endsWith('\n') ? text.slice(0, -1) : text
  const [first, ...lines] = written.split('\n').filter((line) => !nothing.test(line))
  const entries: Entry[] = []
  let indent: number | undefined
  // The entry whose members have a line each.
  let open: Entry | undefined
  for (const line of lines) {
    const [, { length } = '', dash, brace, members = '', end = ''] = entry.exec(line) ?? []
    indent ??= length
    if (length !== indent || brace?.length !== end.length) return undefined
    const isNew = dash === '- '
    const into = isNew ? {} : open
    if (!into || (brace === '{' && !isNew) || !addMembers(into, members, brace === '{')) return undefined
    if (isNew) entries.push(into)
    open = brace === '{' ? undefined : into
  }
  return first === `${name}:` && entries.length > 0 ? { [name]: entries } : undefined
}

/** Returns false for anything but members of other names, or for several where there may be one. */
function addMembers(into: Entry, members: string, several: boolean): boolean {
  let rest = ''
  member.lastIndex = 0
  do {
    const [, name = '', bracket] = member.exec(members) ?? []
    const values: string[] = []
    let end: string | undefined
    plain.lastIndex = member.lastIndex
    do {
      const [, written = '', ...after] = plain.exec(members) ?? []
      if (written === '' || reserved.test(written)) return false
      values.push(/^['"]/.test(written) ? written.slice(1, -1) : written)
      ;[end, rest = ''] = after
    } while (bracket === '[' && end === '' && rest !== '')
    if (name === '' || end !== (bracket === '[' ? ']' : '') || reserved.test(name) || Object.hasOwn(into, name))
      return false
    into[name] = bracket === '[' ? values : values[0]
    member.lastIndex = plain.lastIndex
  } while (several && rest !== '')
  return rest === ''
}
