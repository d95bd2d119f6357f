/** A name, and a value that is a token or a quoted string. Each character can be read in one way only. */
const parameter =
  /[ \t]*([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64})[ \t]*=[ \t]*(?:"((?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*)"|([!#$%&'*+\-.^_`|~0-9A-Za-z]+))[ \t]*(,|$)/y

/** Enough for every parameter that a client sends, with some to spare. */
const maxParameters = 20

/**
 * Reads the parameters of `Authorization: Digest` (RFC 7616, 3.4), each character of `text` being one byte as Node gives
 * header values. Names are in lower case; text in quotes is without them. Undefined for anything else, such as a
 * parameter that repeats: another reader could choose the other one.
 */
export function readParameters(text: string): ReadonlyMap<string, string> | undefined {
  const values = new Map<string, string>()
  parameter.lastIndex = 0
  for (let more = true; more; ) {
    const match = parameter.exec(text)
    if (!match || values.size === maxParameters) return undefined
    const [, name = '', quoted, token = '', end] = match
    const key = name.toLowerCase()
    if (values.has(key)) return undefined
    values.set(key, quoted === undefined ? token : quoted.replace(/\\(.)/gs, '$1'))
    more = end === ','
  }
  return values
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text of UTF-8 bytes. Undefined when they are something else. */
function decoded(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** `UTF-8''J%C3%A4s%C3%B8n` (RFC 8187), the only charset that the challenge offers. */
const extended = /^utf-8'[A-Za-z0-9-]{0,64}'((?:[!#$&+\-.^_`|~0-9A-Za-z]|%[0-9A-Fa-f]{2})+)$/i

/** The user name, from `username` or `username*`. Undefined without either, with both, and when it is not UTF-8. */
export function userNameOf(parameters: ReadonlyMap<string, string>): string | undefined {
  const [plain, encoded] = [parameters.get('username'), parameters.get('username*')]
  if (plain !== undefined) return encoded === undefined ? decoded(Buffer.from(plain, 'latin1')) : undefined
  const text = extended.exec(encoded ?? '')?.[1]
  if (text === undefined) return undefined
  const bytes = text.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return decoded(Buffer.from(bytes, 'latin1'))
}
