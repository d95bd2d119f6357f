import { Fault } from '../errors.ts'
import { type Lazy, lazy } from '../lazy.ts'
import {
  appMetadata,
  callerOf,
  type Described,
  interfaceTitle,
  type LanguageName,
  languageNames,
  languages,
  openapi,
  openapiAll,
  parametersOf,
  rows,
  type Shape,
  shapes,
  typesMetadata,
  usualVerb,
} from '../metadata/index.ts'
import { type Fields, maxBatch, type OperationSpec, replyRoutes, type Schema, schemaOf } from '../protocol/index.ts'
import { reports } from '../reports/index.ts'
import type { RuntimeFacts, ServeOptions } from '../service.ts'
import type { Pair } from '../wire/index.ts'
import type { HttpAnswer } from './answer.ts'
import { html, type Markup, pagePolicy, trusted } from './html.ts'
import { type OwnPage, overHttp, ownPages } from './routes.ts'
import { style } from './style.ts'

/** /metadata: the interface as a readable page, on any screen. */
export function interfacePage(described: Described): { readonly body: string; readonly contentSecurityPolicy: string } {
  const requests = new Set<unknown>(rows.map(({ request }) => request))
  const others = [...shapes().values()].filter(({ schema }) => !requests.has(schema))
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${interfaceTitle}</title>
<style>${trusted(style)}</style>
</head>
<body>
<header>
<h1>${interfaceTitle}</h1>
<p class="quiet">${described.base}</p>
<nav>${rows.map(({ name }) => html`<a href="#${name}">${name}</a> `)}<a href="#types">Types</a></nav>
</header>
<main>
${rows.map((row) => operation(row, described))}
${tools(described)}
<section id="types"><h2>Types</h2>
<div class="many">${others.map(shape)}</div>
</section>
</main>
<footer class="quiet">${described.pages
    .filter(({ paths: [path = ''] }) => parametersOf(path).length === 0)
    .map(({ paths, summary }) => html`<a href="${paths[0] ?? ''}" title="${summary}">${paths[0]}</a> `)}</footer>
</body>
</html>
`
  return { body: page.markup, contentSecurityPolicy: pagePolicy }
}

function operation(row: OperationSpec, { base }: Described): Markup {
  return html`<section id="${row.name}">
<h2>${row.name}</h2>
<p>${row.summary}. ${callerOf(row)} may call it.</p>
<ul class="paths">${row.routes.map(({ path, verbs }) => place(verbs, path))}${replyRoutes
    .filter(({ prefix }) => !prefix.endsWith('/oneway'))
    .map(({ prefix }) => place(row.replyVerbs, `${prefix}/${row.name}`))}${
    row.batch ? place(['POST'], `/api/${row.name}[]`, `an array of at most ${maxBatch}`) : undefined
  }</ul>
${fieldsTable(row.request.fields)}
<p>Answer: <a href="#${row.response.name}">${row.response.name}</a></p>
${row.neverInQuery.length > 0 ? html`<p class="quiet">Not accepted in a query, because queries are logged: ${row.neverInQuery.join(', ')}.</p>` : undefined}
<pre>${example(row, base)}</pre>
</section>
`
}

const place = (verbs: readonly string[], path: string, note?: string): Markup =>
  html`<li><span class="verb">${verbs.filter((verb) => verb !== 'OPTIONS').join(' ')}</span><code>${path}</code>${
    note === undefined ? undefined : html` <span class="quiet">${note}</span>`
  }</li>`

/** A command that can be copied and run; only the values have to be filled in. */
function example(row: OperationSpec, base: string): string {
  const { path } = row.routes[0]
  const token = row.caller === 'anyone' ? '' : ` -H "Authorization: Bearer $TOKEN"`
  if (usualVerb(row) === 'GET') {
    const query = Object.entries(row.request.fields)
      .filter(([, field]) => field.kind === 'required')
      .map(([name, field]) => `${name}=${sample(schemaOf(field))}`)
    return `curl '${base}${path}${query.length > 0 ? `?${query.join('&')}` : ''}'${token}`
  }
  const chosen = Object.entries(row.request.fields).filter(([name]) => name !== 'Meta')
  const fields = chosen.some(([, field]) => field.kind === 'required')
    ? chosen.filter(([, field]) => field.kind === 'required')
    : chosen.filter(([name]) => visible.has(name))
  const body = Object.fromEntries(fields.map(([name, field]) => [name, sampleJson(schemaOf(field))]))
  const call = `curl '${base}${path}' -H 'Content-Type: application/json'${token}`
  const json = JSON.stringify(body)
  // Other users of the machine can read the arguments of a command.
  return row.neverInQuery.length > 0
    ? `${call} -d @request.json\n\nrequest.json, readable only by you:\n${json}`
    : `${call} \\\n  -d '${json}'`
}

/** Without required fields, the example shows those that most callers send. */
const visible: ReadonlySet<string> = new Set(['provider', 'UserName', 'Password', 'Roles', 'RefreshToken'])

const sample = (schema: Schema): string => (schema.kind === 'choice' ? (schema.values[0] ?? '') : '…')
const sampleJson = (schema: Schema): unknown => (schema.kind === 'list' ? ['…'] : sample(schema))

const fieldsTable = (fields: Fields): Markup =>
  html`<table class="fields">${Object.entries(fields).map(
    ([name, field]) =>
      html`<tr><th scope="row"><code>${name}</code></th><td>${typeOf(schemaOf(field))}${
        field.kind === 'required' ? html`, <strong>required</strong>` : undefined
      }</td></tr>`,
  )}</table>`

function shape({ schema }: Shape): Markup {
  return html`<div id="${schema.name}"><h3>${schema.name}</h3>${
    schema.kind === 'choice' ? html`<p>${schema.values.join(', ')}</p>` : fieldsTable(schema.fields)
  }</div>`
}

const link = (name: string): Markup => html`<a href="#${name}">${name}</a>`

function typeOf(schema: Schema): Markup {
  switch (schema.kind) {
    case 'text':
      return html`text`
    case 'flag':
      return html`true or false`
    case 'number':
      return schema.integer ? html`whole number` : html`number`
    case 'date':
      return html`date, <code>/Date(ms-0000)/</code>`
    case 'duration':
      return html`duration, <code>PT1.5S</code>`
    case 'map':
      return html`map of text to text`
    case 'list':
      return html`list of ${typeOf(schema.item)}`
    case 'choice':
    case 'dto':
      return link(schema.name)
  }
}

const tools = ({ base, reports }: Described): Markup => html`<section>
<h2>For programs</h2>
<div class="many">
<div><p>A client in any language, from <a href="/openapi.json">OpenAPI 3.1</a></p><pre>${base}/openapi.json</pre></div>
<div><p>A ServiceStack client in ${languageNames.map(
  (name, i) => html`${i > 0 ? ', ' : ''}<a href="/types/${name}">${languages[name].title}</a>`,
)}</p><pre>npx -p @servicestack/cli typescript-ref ${base}</pre></div>
<div><p>JSON, or CSV and JSV by suffix, <code>?format=csv</code> or Accept. For health also</p><pre>${reports
  .map(({ name, by, contentType }) => (by === 'format' ? `?format=${name}` : `Accept: ${contentType.split(';')[0]}`))
  .join('\n')}</pre></div>
<div><p>For ServiceStack tools</p><pre>${base}/metadata/app.json
${base}/types/metadata.json</pre></div>
</div>
</section>
`

export type DocumentName = 'metadata' | 'openapi' | 'openapiAll' | 'types' | 'app'

/** The number of cached base addresses. Bounded, because callers choose the port in the Host header. */
const maxBases = 16

type Documents = Readonly<Record<DocumentName, HttpAnswer>>
/** The options that change the description. */
type DescribedOptions = Pick<ServeOptions, 'basic' | 'names'> & {
  readonly jsonp: boolean
  readonly providers?: RuntimeFacts['providers']
}

/** Descriptions of the interface (R6). Each is made on first use, once per base address. */
export class DescribedInterface {
  readonly #made = new Map<string, Lazy<Documents>>()
  readonly #options: DescribedOptions

  constructor(options: DescribedOptions) {
    this.#options = options
  }

  /** `base` is the server's address as the caller knows it, from a Host header that has passed the check. */
  async answer(base: string, name: DocumentName): Promise<HttpAnswer> {
    let documents = this.#made.get(base)
    if (documents === undefined) {
      documents = lazy(() => make(base, this.#options))
      if (this.#made.size >= maxBases) this.#made.clear()
      this.#made.set(base, documents)
    }
    return (await documents.get())[name]
  }

  /**
   * The interface in a language, generated for this request with the options in its query. Throws BadRequest for an
   * option value that is not allowed.
   */
  types(base: string, name: LanguageName, query: readonly Pair[]): HttpAnswer {
    const language = languages[name]
    const reading = language.read(query)
    if (reading.faults.length > 0) {
      throw new Fault('BadRequest', reading.faults.map(({ message }) => message).join('. '), {
        fields: reading.faults.map((fault) => ({
          ErrorCode: 'BadRequest',
          FieldName: fault.name,
          Message: fault.message,
        })),
      })
    }
    const body = language.file({ base, names: this.#options.names }, reading, new Date())
    return { status: 200, contentType: ownPages[`types/${name}`].contentType, body }
  }
}

async function make(base: string, options: DescribedOptions): Promise<Documents> {
  const described = await describedAt(base, options)
  const json = (value: object): string => `${JSON.stringify(value)}\n`
  const page = interfacePage(described)
  return {
    metadata: { ...of('metadata', page.body), contentSecurityPolicy: page.contentSecurityPolicy },
    openapi: of('openapi', json(openapi(described))),
    openapiAll: of('openapiAll', json(openapiAll(described))),
    types: of('types', json(typesMetadata(described))),
    app: of('app', json(appMetadata(described))),
  }
}

const of = (name: DocumentName, body: string): HttpAnswer => ({
  status: 200,
  contentType: ownPages[name].contentType,
  body,
})

/** The description of a server at that address, including the report formats of health answers (F5). */
export async function describedAt(
  base: string,
  { jsonp, basic, names, providers }: DescribedOptions,
): Promise<Described> {
  const entries = [
    ...overHttp.format.map((name) => ({ name, by: 'format' as const })),
    ...overHttp.accept.map(({ name }) => ({ name, by: 'accept' as const })),
  ]
  const documents = await Promise.all(
    entries.map(async ({ name, by }) => ({ name, by, contentType: (await reports[name].load()).default.contentType })),
  )
  return { base, jsonp, basic, names, providers, pages: Object.values<OwnPage>(ownPages), reports: documents }
}
