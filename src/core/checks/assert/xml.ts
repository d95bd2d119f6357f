import { decodeStrictly } from '../../base/encoding.ts'
import { showBytes } from '../../base/format.ts'

/** One element; `text` is its own text and CDATA, trimmed. Names keep their prefix. */
export type XmlElement = {
  readonly name: string
  readonly attributes: ReadonlyMap<string, string>
  readonly children: readonly XmlElement[]
  readonly text: string
}
/** An answer as XML, or why it cannot be read, in words that follow "the answer". */
export type XmlRead = { readonly root: XmlElement } | { readonly problem: string }

/** Bytes. Parsing cannot be interrupted, so a larger document would delay every other monitor. */
const maxDocument = 4 * 1024 * 1024
/** Bytes within which the root must begin, for callers that wait for its end. */
const headBytes = 8 * 1024
/** Maximum nesting of elements. */
const deepest = 64

/** Loaded on demand: most monitors never read XML. */
export const loadXmlParser = () => import('fast-xml-parser')

/**
 * Parses XML from a peer. Document types are refused, so that no entity is ever declared, expanded or fetched. Never
 * throws, and never repeats the input.
 */
export async function readXml(bytes: Buffer, contentType?: string): Promise<XmlRead> {
  if (bytes.length > maxDocument) {
    return { problem: `is ${showBytes(bytes.length)} (limit for XML ${showBytes(maxDocument)})` }
  }
  const text = decode(bytes, contentType)
  if (text === undefined) return { problem: 'is not valid in its declared encoding' }
  if (text.trim() === '') return { problem: 'is empty, not XML' }
  if (!text.trimStart().startsWith('<')) return { problem: 'is not XML: it does not begin with "<"' }
  if (declaresType(text)) return { problem: 'declares a document type (DOCTYPE), which svc does not read' }
  const { XMLParser, XMLValidator } = await loadXmlParser()
  try {
    const valid = XMLValidator.validate(text)
    if (valid !== true) return { problem: `is not well-formed XML: line ${valid.err.line}, column ${valid.err.col}` }
    const parser = new XMLParser({
      preserveOrder: true,
      ignoreAttributes: false,
      attributeNamePrefix: '',
      parseTagValue: false,
      parseAttributeValue: false,
      trimValues: false,
      processEntities: false,
      cdataPropName: cdata,
      ignoreDeclaration: true,
      ignorePiTags: true,
      maxNestedTags: deepest,
    })
    const roots = elements(parser.parse(text) as readonly Parsed[])
    const [root] = roots
    return root && roots.length === 1 ? { root } : { problem: 'is not well-formed XML: it has no single root' }
  } catch (error) {
    if (error instanceof BadReference) return { problem: 'is not well-formed XML: it uses an unknown "&" entity' }
    const deep = error instanceof RangeError || /nested/i.test((error as Error).message)
    return { problem: deep ? `nests elements more than ${deepest} deep` : 'is not well-formed XML' }
  }
}

/** The text of a document, or undefined when it is not valid in its encoding. */
function decode(bytes: Buffer, contentType: string | undefined): string | undefined {
  const declaration = /^\s*<\?xml[^>]{0,100}?\sencoding\s*=\s*["']([\w.:-]{1,40})["']/.exec(
    bytes.toString('latin1', 0, 200),
  )
  return decodeStrictly(bytes, { contentType, declared: declaration?.[1] ?? 'utf-8' })
}

/** Whether there is a `<!…` that is neither a comment nor CDATA. Reads each character at most twice. */
function declaresType(text: string): boolean {
  let at = text.indexOf('<!')
  while (at >= 0) {
    const end = text.startsWith('<!--', at) ? '-->' : text.startsWith('<![CDATA[', at) ? ']]>' : undefined
    if (end === undefined) return true
    const closed = text.indexOf(end, at + 4)
    // An unclosed construct is not a declaration; the validator reports it.
    if (closed < 0) return false
    at = text.indexOf('<!', closed)
  }
  return false
}

const cdata = '#cdata'
type Parsed = Readonly<Record<string, unknown>>

function elements(parsed: readonly Parsed[]): readonly XmlElement[] {
  return parsed.flatMap((node) => {
    const name = nameOf(node)
    if (name === undefined || name === '#text' || name === cdata) return []
    const inner = node[name] as readonly Parsed[]
    const attributes = Object.entries((node[':@'] ?? {}) as Readonly<Record<string, unknown>>)
    return [
      {
        name,
        attributes: new Map(attributes.map(([key, value]) => [key, unescaped(textOf(value))])),
        children: elements(inner),
        text: inner.map(ownText).join('').trim(),
      },
    ]
  })
}

const nameOf = (node: Parsed): string | undefined => Object.keys(node).find((key) => key !== ':@')

function ownText(node: Parsed): string {
  const plain = node['#text']
  if (typeof plain === 'string') return unescaped(plain)
  const raw = node[cdata] as readonly Parsed[] | undefined
  return raw?.map((part) => textOf(part['#text'])).join('') ?? ''
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

class BadReference extends Error {}

const predefined: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** Replaces XML's five predefined entities and character references once; the results are not expanded again. */
function unescaped(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(/&(?:#(\d{1,7})|#x([\da-fA-F]{1,6})|(amp|lt|gt|quot|apos))?;?/g, (entity, dec, hex, name) => {
    const code = dec === undefined ? (hex === undefined ? undefined : Number.parseInt(hex, 16)) : Number(dec)
    const character =
      code === undefined ? predefined[String(name)] : code <= 0x10ffff ? String.fromCodePoint(code) : undefined
    if (character === undefined || !entity.endsWith(';')) throw new BadReference()
    return character
  })
}

type Root = { readonly name: string; readonly closed: boolean }

/**
 * Returns a function that tells whether the document being received is complete: its root is closed. Anything before
 * the first `<` (a frame's header) is ignored. Repeated calls are cheap.
 */
export function xmlEnd(): (received: Buffer) => boolean {
  const findRoot = rootFinder()
  let root: Root | undefined
  let looked = 0
  return (received) => {
    if (root === undefined && looked < headBytes) {
      root = findRoot(received.toString('latin1', 0, headBytes))
      looked = received.length
    }
    if (root === undefined) return false
    if (root.closed) return true
    const tail = received.toString('latin1', Math.max(0, received.length - root.name.length - 64)).trimEnd()
    return tail.endsWith('>') && tail.slice(0, -1).trimEnd().endsWith(`</${root.name}`)
  }
}

/**
 * Returns a function that finds the root in a text that grows from call to call. Each call goes on where the last one
 * ended: a tag in small pieces would otherwise cost the square of its length.
 */
function rootFinder(): (head: string) => Root | undefined {
  let at = 0
  let tag: ReturnType<typeof tagReader> | undefined
  return (head) => {
    while (tag === undefined) {
      const start = head.indexOf('<', at)
      if (start < 0) return undefined
      at = start
      const opening = openingAt(head, start)
      if (opening === undefined) return undefined
      // A document type is refused anyway, so there is nothing to wait for.
      if (opening === 'type') return { name: '!', closed: true }
      if (opening === 'tag') tag = tagReader(start + 1)
      else {
        const end = head.indexOf(opening, start)
        if (end < 0) return undefined
        at = end
      }
    }
    return tag(head)
  }
}

/**
 * The markup that begins at a `<`: a tag, a document type, or markup that ends with the given text. Undefined until
 * that is certain.
 */
function openingAt(head: string, start: number): 'tag' | 'type' | '?>' | '-->' | undefined {
  const [, second, third, fourth] = head.slice(start, start + 4)
  if (second === undefined) return undefined
  if (second === '?') return '?>'
  if (second !== '!') return 'tag'
  if (third === undefined) return undefined
  if (third !== '-') return 'type'
  if (fourth === undefined) return undefined
  return fourth === '-' ? '-->' : 'tag'
}

const maxTagName = 200
const nameText = /[^\s/>"'=]*/y
const tagText = /[^<>"']*/y

/** Reads a start tag of a growing text, from its name on: each call goes on where the last one ended. */
function tagReader(start: number): (head: string) => Root | undefined {
  let at = start
  let name: string | undefined
  let quote: string | undefined
  let broken = false
  /** Moves to the end of what the pattern takes, and returns the character there. */
  const pass = (pattern: RegExp, head: string): string | undefined => {
    pattern.lastIndex = at
    pattern.exec(head)
    at = pattern.lastIndex
    return head[at]
  }
  return (head) => {
    if (name === undefined && !broken) {
      if (pass(nameText, head) === undefined) return undefined
      name = head.slice(start, at)
      broken = name === '' || name.length > maxTagName
    }
    while (name !== undefined && !broken) {
      if (quote === undefined) {
        const next = pass(tagText, head)
        if (next === '>') return { name, closed: head[at - 1] === '/' }
        if (next === undefined) return undefined
        broken = next === '<'
        quote = next
      } else {
        const end = head.indexOf(quote, at)
        at = end < 0 ? head.length : end
        if (end < 0) return undefined
        quote = undefined
      }
      at += 1
    }
    return undefined
  }
}
