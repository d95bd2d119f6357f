/** A media type or disposition: its value in lower case, and its parameters by their names in lower case. */
export type HeaderValue = { readonly value: string; readonly parameters: ReadonlyMap<string, string> }

const parameter = /[ \t]*;[ \t]*(?:([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))[ \t]*)?/y

/** Parses `value; name=token; name="quoted"`; undefined when the parameters are malformed. */
export const parseHeaderValue = (header: string): HeaderValue | undefined => {
  const semicolon = header.indexOf(';')
  const value = (semicolon === -1 ? header : header.slice(0, semicolon)).trim().toLowerCase()
  const parameters = new Map<string, string>()
  parameter.lastIndex = semicolon === -1 ? header.length : semicolon
  while (parameter.lastIndex < header.length) {
    const found = parameter.exec(header)
    if (!found) return undefined
    const [, name, quoted, token = ''] = found
    if (name !== undefined) parameters.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? token)
  }
  return { value, parameters }
}
