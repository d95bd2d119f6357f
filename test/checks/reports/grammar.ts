/** Readers of the formats that reports write, each as strict as the format's own description. */

/** Every element of an XML document, or an error where it is not well-formed XML 1.0. */
export function xmlElements(text: string): readonly { readonly name: string; readonly attributes: Attributes }[] {
  // Char production of XML 1.0, less the carriage return, which a reader would turn into a line feed.
  if (/[^\t\n\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u.test(text)) throw new Error('a character XML forbids')
  const body = text.replace(/^<\?xml version="1\.0" encoding="UTF-8"\?>\n/, '')
  const open: string[] = []
  const results: { name: string; attributes: Attributes }[] = []
  let at = 0
  const token = /<(\/?)([A-Za-z][\w.-]*)((?:\s+[\w:-]+="[^"<]*")*)\s*(\/?)>|([^<]+)/y
  while (at < body.length) {
    token.lastIndex = at
    const match = token.exec(body)
    if (!match) throw new Error(`not well-formed at ${JSON.stringify(body.slice(at, at + 40))}`)
    const [whole, closing, name, attributes, empty, chars] = match
    at += whole.length
    if (chars !== undefined) checkText(chars)
    else if (closing) {
      if (open.pop() !== name) throw new Error(`</${name}> closes something else`)
    } else {
      if (open.length === 0 && results.length > 0) throw new Error('two root elements')
      results.push({ name: name ?? '', attributes: readAttributes(attributes ?? '') })
      if (!empty) open.push(name ?? '')
    }
  }
  if (open.length > 0) throw new Error(`unclosed ${open.join(' ')}`)
  return results
}
type Attributes = Readonly<Record<string, string>>

function checkText(text: string): void {
  if (/&(?!(?:amp|lt|gt|quot|apos|#\d+);)/.test(text)) throw new Error('a bare ampersand')
  if (text.includes(']]>')) throw new Error('a bare ]]>')
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function readAttributes(text: string): Attributes {
  return Object.fromEntries(
    [...text.matchAll(/([\w:-]+)="([^"]*)"/g)].map(([, name = '', value = '']) => {
      checkText(value)
      // A literal tab or line feed would be read as a space.
      if (/[\t\n]/.test(value)) throw new Error('an attribute that a reader would change')
      return [
        name,
        value.replace(/&(#(\d+)|\w+);/g, (_, entity, code) => entities[entity] ?? String.fromCharCode(code)),
      ]
    }),
  )
}

export type WorkflowCommand = {
  readonly command: string
  readonly properties: Readonly<Record<string, string>>
  readonly data: string
}

/**
 * The command that GitHub's runner obeys in one line of output: the form at the line's start, else the older one
 * anywhere.
 */
export function workflowCommand(line: string): WorkflowCommand | undefined {
  const knownCommand =
    /^(error|warning|notice|debug|add-mask|set-output|set-env|add-path|stop-commands|group|endgroup|echo)$/
  const trimmed = line.trimStart()
  const end = trimmed.startsWith('::') ? trimmed.indexOf('::', 2) : -1
  if (end > 0) {
    const info = trimmed.slice(2, end)
    const space = info.indexOf(' ')
    const command = space < 0 ? info : info.slice(0, space)
    if (knownCommand.test(command)) {
      const pairs =
        space < 0
          ? []
          : info
              .slice(space + 1)
              .trim()
              .split(',')
              .filter(Boolean)
      const properties = pairs
        .map((pair) => pair.split(/=(.*)/s))
        .map(([name = '', value = '']) => [name, unescaped(value)])
      return { command, properties: Object.fromEntries(properties), data: unescaped(trimmed.slice(end + 2)) }
    }
  }
  const [, older] = /##\[([^\] ]*)[^\]]*\]/.exec(line) ?? []
  return older !== undefined && knownCommand.test(older)
    ? { command: `##[${older}]`, properties: {}, data: '' }
    : undefined
}

const unescaped = (text: string): string =>
  text
    .replaceAll('%0D', '\r')
    .replaceAll('%0A', '\n')
    .replaceAll('%3A', ':')
    .replaceAll('%2C', ',')
    .replaceAll('%25', '%')

export type Series = {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Prometheus text format 0.0.4: every sample, or an error where Prometheus would refuse the scrape. */
export function prometheusSeries(text: string): readonly Series[] {
  if (text !== '' && !text.endsWith('\n')) throw new Error('the last line must end with a line feed')
  const typed = new Set<string>()
  const helped = new Set<string>()
  const names = new Set<string>()
  let current = ''
  return text
    .split('\n')
    .slice(0, -1)
    .flatMap((line) => {
      const [, keyword, about = ''] = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) .+$/.exec(line) ?? []
      if (keyword) {
        const knownCommand = keyword === 'HELP' ? helped : typed
        if (knownCommand.has(about)) throw new Error(`a second ${keyword} of ${about}`)
        knownCommand.add(about)
        if (keyword === 'TYPE' && !/ (counter|gauge|histogram|summary|untyped)$/.test(line)) throw new Error(line)
        current = about
        return []
      }
      const [, name = '', labels = '', value = ''] =
        /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/.exec(
          line,
        ) ?? []
      if (name === '' || name !== current || !typed.has(name)) throw new Error(`not a sample of ${current}: ${line}`)
      const key = `${name}{${labels}}`
      if (names.has(key)) throw new Error(`collected twice: ${key}`)
      names.add(key)
      const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label = '', raw = '']) => [
        label,
        raw.replace(/\\(.)/g, (_, char) => (char === 'n' ? '\n' : char)),
      ])
      return [{ name, labels: Object.fromEntries(pairs), value: Number(value) }]
    })
}

export type PerfDatum = { readonly label: string; readonly value: number; readonly unit: string }

/** A Nagios plugin's first line: its text, and performance data as the plugin guidelines write it. */
export function nagiosLine(line: string): {
  readonly state: string
  readonly text: string
  readonly data: readonly PerfDatum[]
} {
  const [, text = '', data] = /^([^|]*?)(?: \| ([^|]*))?$/.exec(line) ?? []
  const [, state = ''] = /^SVC (OK|WARNING|CRITICAL|UNKNOWN) - \S/.exec(text) ?? []
  if (state === '') throw new Error(`not a status line: ${line}`)
  const range = String.raw`(?:@?(?:~|-?\d+(?:\.\d+)?)?:?(?:-?\d+(?:\.\d+)?)?)`
  const figure = String.raw`(?:-?\d+(?:\.\d+)?)?`
  const datum = new RegExp(
    String.raw`(?:'([^'=|]+)'|([^'=|\s]+))=(-?\d+(?:\.\d+)?)(s|ms|us|%|B|KB|MB|TB|c)?(?:;${range}(?:;${range}(?:;${figure}(?:;${figure})?)?)?)?(?:\s|$)`,
    'y',
  )
  const results: PerfDatum[] = []
  let at = 0
  while (data !== undefined && at < data.length) {
    datum.lastIndex = at
    const match = datum.exec(data)
    if (!match) throw new Error(`not performance data: ${data.slice(at)}`)
    at = datum.lastIndex
    results.push({ label: match[1] ?? match[2] ?? '', value: Number(match[3]), unit: match[4] ?? '' })
  }
  return { state, text, data: results }
}
