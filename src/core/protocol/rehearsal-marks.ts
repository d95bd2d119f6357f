/**
 * The marks of a rehearsal (`svc serve --rehearse`, Y1) in every format, so that nobody takes its answers for those of a
 * server that checks something. Readers know them by the word drill, as those of `svc drill`: one route serves both.
 */

/** A header of every answer: its name and its value. */
export const rehearsalHeader = ['Svc-Drill', 'rehearsal'] as const

const prefix = 'DRILL: '

export const isMarked = (text: string): boolean => text.startsWith(prefix)

/** A message with its mark. One that has it remains as it is. */
export const markText = (text: string): string => (isMarked(text) ? text : prefix + text)

export const withoutMark = (text: string): string => (isMarked(text) ? text.slice(prefix.length) : text)

/** The member of documents, reports and errors. Those of other servers have none. */
export const rehearsalMember = { drill: true } as const

/** The label of every sample. */
export const rehearsalLabels = { drill: 'true' } as const

const label = 'drill="true"'
/** Quotes in values are escaped, so that no value contains the label. */
const hasLabel = /[{,]drill="true"[,}]/

/** Values of labels have no line breaks: in both formats of metrics, every line without `#` is a sample. */
const markSamples = (page: string): string =>
  page.replace(/(^|\n)([a-zA-Z_:][a-zA-Z0-9_:]*\{?)([^\n]*)/g, (line, start: string, name: string, rest: string) => {
    if (hasLabel.test(line)) return line
    return name.endsWith('{') ? `${start}${name}${label},${rest}` : `${start}${name}{${label}}${rest}`
  })

/** Text in a page is escaped, so that these are its own elements. */
const markPage = (page: string): string =>
  page
    .replace('<title>', `<title>${prefix}`)
    .replace(
      /<body(?: [^<>]*)?>/,
      (element) =>
        `${element}\n<p class="drill" role="alert"><b>DRILL</b> This server rehearses: its faults are scripted, and it checks nothing.</p>`,
    )

/** By media type. The messages in all other bodies have their marks from whoever wrote them. */
const bodyMarks: readonly (readonly [type: RegExp, mark: (body: string) => string])[] = [
  [/^text\/html\b/, markPage],
  [/^(?:text\/plain; version=|application\/openmetrics-text\b)/, markSamples],
]

/** The body of an answer with its marks, whichever code wrote it. */
export const markBody = (contentType: string, body: string): string =>
  bodyMarks.find(([type]) => type.test(contentType))?.[1](body) ?? body
