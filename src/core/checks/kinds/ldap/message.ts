import { ProbeError } from '../../../base/probe-error.ts'

/** The fields that every answer except an entry contains (RFC 4511, 4.1.9). */
export type LdapResult = { readonly code: number; readonly text: string }

type Element = { readonly tag: number; readonly content: Buffer; readonly end: number }

/** Maximum bytes; the answers to the checks' requests are small. */
const maxBytes = 1024 * 1024
const tags = { integer: 0x02, text: 0x04, enumerated: 0x0a, sequence: 0x30, set: 0x31, controls: 0xa0 } as const
const extended = 0x78

/**
 * Splits the received bytes into whole messages and validates each completely. The driver must never see unvalidated
 * data: it loops for ever on a length that exceeds its message, and treats a missing result as success.
 */
export class LdapFrames {
  readonly #address: string
  #chunks: Buffer[] = []
  #length = 0
  /** The number of bytes that the next parsing attempt needs. This keeps the cost low if a peer sends single bytes. */
  #needed = 2
  #taken = 0

  constructor(address: string) {
    this.#address = address
  }

  /**
   * Throws ProbeError `protocol` for data that is not LDAP, for too much data, and if the server announces a
   * disconnection.
   */
  take(chunk: Buffer): readonly Buffer[] {
    this.#taken += chunk.length
    if (this.#taken > maxBytes) throw new ProbeError('protocol', `${this.#address} sent more than 1 MiB`)
    this.#chunks.push(chunk)
    this.#length += chunk.length
    if (this.#length < this.#needed) return []
    let rest = Buffer.concat(this.#chunks)
    const messages: Buffer[] = []
    try {
      for (let size = sizeOf(rest); ; size = sizeOf(rest)) {
        this.#needed = size ?? rest.length + 1
        if (size === undefined || size > rest.length) break
        const message = rest.subarray(0, size)
        checkMessage(message)
        messages.push(message)
        rest = rest.subarray(size)
      }
    } catch (error) {
      if (!(error instanceof Unsound)) throw error
      throw new ProbeError('protocol', `${this.#address} does not answer in valid LDAP: ${error.message}`)
    }
    this.#chunks = [rest]
    this.#length = rest.length
    return messages
  }

  /** True if no incomplete message is buffered. */
  get empty(): boolean {
    return this.#length === 0
  }
}

/** The result in a validated message, and its message id. An id of 0 marks an unsolicited notification. */
export function resultOf(message: Buffer): (LdapResult & { readonly id: number; readonly tag: number }) | undefined {
  const [id, operation] = elements(element(message, 0).content)
  if (!id || !operation || !results.has(operation.tag)) return undefined
  const [code, , text] = elements(operation.content)
  if (!code || !text) return undefined
  return { id: number(id), tag: operation.tag, code: number(code), text: text.content.toString('utf8') }
}

class Unsound extends Error {}

const results = new Set([0x61, 0x65, extended])
/** Referral, SASL credentials, response name and value. */
const afterResult = new Set([0xa3, 0x87, 0x8a, 0x8b])

function checkMessage(message: Buffer): void {
  const [id, operation, controls, ...more] = elements(element(message, 0).content)
  expect(id, tags.integer)
  if (!operation || more.length > 0) throw new Unsound('a message of the wrong shape')
  if (controls) for (const control of elements(expect(controls, tags.controls).content)) checkControl(control)
  if (results.has(operation.tag)) checkResult(operation)
  else if (operation.tag === 0x64) checkEntry(operation)
  else if (operation.tag === 0x73) for (const one of elements(operation.content)) expect(one, tags.text)
  else throw new Unsound(`an operation 0x${operation.tag.toString(16)} that is not an answer`)
}

function checkResult(operation: Element): void {
  const [code, name, text, ...more] = elements(operation.content)
  expect(code, tags.enumerated)
  expect(name, tags.text)
  expect(text, tags.text)
  if (more.some((one) => !afterResult.has(one.tag))) throw new Unsound('a result of the wrong shape')
}

function checkEntry(operation: Element): void {
  const [name, attributes, ...more] = elements(operation.content)
  expect(name, tags.text)
  for (const attribute of elements(expect(attributes, tags.sequence).content)) {
    const [type, values, ...others] = elements(expect(attribute, tags.sequence).content)
    expect(type, tags.text)
    for (const value of elements(expect(values, tags.set).content)) expect(value, tags.text)
    if (others.length > 0) throw new Unsound('an attribute of the wrong shape')
  }
  if (more.length > 0) throw new Unsound('an entry of the wrong shape')
}

function checkControl(control: Element): void {
  const [type, ...more] = elements(expect(control, tags.sequence).content)
  expect(type, tags.text)
  const boolean = 0x01
  if (more.length > 2 || more.some(({ tag }) => tag !== boolean && tag !== tags.text)) {
    throw new Unsound('a control of the wrong shape')
  }
  const value = more.find(({ tag }) => tag === tags.text)
  if (value && type?.content.toString('latin1') === passwordPolicy) checkPasswordPolicy(value.content)
}

const passwordPolicy = '1.3.6.1.4.1.42.2.27.8.5.1'

/** PasswordPolicyResponseValue (draft-behera-ldap-password-policy, 6.2): a warning, an error, both or neither. */
function checkPasswordPolicy(content: Buffer): void {
  const [value, ...more] = elements(content)
  const [warning, error] = [0xa0, 0x81]
  const parts = elements(expect(value, tags.sequence).content)
  const isInOrder = parts.map(({ tag }) => tag).every((tag, at) => tag === error || (tag === warning && at === 0))
  if (more.length > 0 || parts.length > 2 || !isInOrder) throw new Unsound('a control of the wrong shape')
  const [first] = parts
  const figures = first?.tag === warning ? elements(first.content) : []
  if (first?.tag === warning && (figures.length !== 1 || figures.some(({ tag }) => tag !== 0x80 && tag !== 0x81)))
    throw new Unsound('a control of the wrong shape')
  for (const figure of [...figures, ...parts.filter(({ tag }) => tag === error)]) {
    if (figure.content.length === 0 || figure.content.length > 4) throw new Unsound('a number of the wrong size')
  }
}

function expect(element: Element | undefined, tag: number): Element {
  if (element?.tag !== tag)
    throw new Unsound(element ? `tag 0x${element.tag.toString(16)} in the wrong place` : 'cut short')
  const numeric = tag === tags.integer || tag === tags.enumerated
  if (numeric && (element.content.length === 0 || element.content.length > 4))
    throw new Unsound('a number of the wrong size')
  return element
}

const number = ({ content }: Element): number => content.readIntBE(0, content.length)

/** The elements of a content, which they must fill to its last byte. */
function elements(content: Buffer): readonly Element[] {
  const parsed: Element[] = []
  for (let at = 0; at < content.length; ) {
    const one = element(content, at)
    parsed.push(one)
    at = one.end
  }
  return parsed
}

function element(buffer: Buffer, at: number): Element {
  const header = headerOf(buffer, at)
  if (header === undefined || header.end > buffer.length)
    throw new Unsound('an element that is longer than its message')
  return { tag: buffer.readUInt8(at), content: buffer.subarray(header.from, header.end), end: header.end }
}

/** The size of the message at the start of a buffer, in bytes; undefined until enough bytes are present. */
function sizeOf(buffer: Buffer): number | undefined {
  if (buffer.length > 0 && buffer.readUInt8(0) !== tags.sequence) throw new Unsound('not the beginning of a message')
  const size = headerOf(buffer, 0)?.end
  if (size !== undefined && size > maxBytes) throw new Unsound('a message of more than 1 MiB')
  return size
}

function headerOf(buffer: Buffer, at: number): { readonly from: number; readonly end: number } | undefined {
  if (buffer.length < at + 2) return undefined
  if ((buffer.readUInt8(at) & 0x1f) === 0x1f) throw new Unsound('a tag of several bytes')
  const first = buffer.readUInt8(at + 1)
  if (first < 0x80) return { from: at + 2, end: at + 2 + first }
  const size = first & 0x7f
  // LDAP uses only the definite form of lengths (RFC 4511, 5.1).
  if (size === 0 || size > 4) throw new Unsound('a length of an unknown form')
  if (buffer.length < at + 2 + size) return undefined
  const from = at + 2 + size
  return { from, end: from + buffer.readUIntBE(at + 2, size) }
}
