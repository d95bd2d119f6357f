import { randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { Fault } from '../base/errors.ts'
import { type Lazy, lazy } from '../base/lazy.ts'
import { reports } from '../checks/reports/index.ts'
import {
  type Fields,
  maxBatch,
  neverInQuery,
  type OperationSpec,
  replyRoutes,
  type Schema,
  schemaOf,
} from '../protocol/index.ts'
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
} from '../protocol/metadata/index.ts'
import type { RuntimeFacts, ServeOptions } from '../protocol/service/service.ts'
import type { Pair } from '../protocol/wire/index.ts'
import type { HttpAnswer } from './answer.ts'
import { html, type Markup, pagePolicy, trusted } from './html.ts'
import { type OwnPage, overHttp, ownPages, type TypesPage } from './routes.ts'
import { style } from './style.ts'

/** /metadata: the interface as a readable page, on any screen. */
function interfacePage(described: Described): string {
  const requests = new Set<unknown>(rows.map(({ request }) => request))
  const others = [...shapes().values()].filter(({ schema }) => !requests.has(schema))
  return html`<!doctype html>
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
<p class="muted">${described.base}</p>
<nav>${rows.map(({ name }) => html`<a href="#${name}">${name}</a> `)}<a href="#types">Types</a></nav>
</header>
<main>
${rows.map((row) => operation(row, described))}
${tools(described)}
<section id="types"><h2>Types</h2>
<div class="many">${others.map(shape)}</div>
</section>
</main>
<footer class="muted">${described.pages
    .filter(({ paths: [path = ''] }) => parametersOf(path).length === 0)
    .map(({ paths, summary }) => html`<a href="${paths[0] ?? ''}" title="${summary}">${paths[0]}</a> `)}</footer>
</body>
</html>
`.markup
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
${neverInQuery(row).length > 0 ? html`<p class="muted">Not accepted in a query, because queries are logged: ${neverInQuery(row).join(', ')}.</p>` : undefined}
<pre>${example(row, base)}</pre>
</section>
`
}

const place = (verbs: readonly string[], path: string, note?: string): Markup =>
  html`<li><span class="verb">${verbs.filter((verb) => verb !== 'OPTIONS').join(' ')}</span><code>${path}</code>${
    note === undefined ? undefined : html` <span class="muted">${note}</span>`
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
  return neverInQuery(row).length > 0
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

/** The descriptions with relative addresses, which are the same for all callers. */
type StoredName = 'openapi' | 'openapiAll' | 'app'
/** Those that name the address that the caller used. */
type AddressedName = 'metadata' | 'types'
export type DocumentName = StoredName | AddressedName

/** The options that change the description. */
type DescribedOptions = Pick<ServeOptions, 'basic' | 'names'> & {
  readonly jsonp: boolean
  readonly providers?: RuntimeFacts['providers']
}

const json = (value: object): string => `${JSON.stringify(value)}\n`

const stored: Readonly<Record<StoredName, (described: Described) => string>> = {
  openapi: (described) => json(openapi(described)),
  openapiAll: (described) => json(openapiAll(described)),
  app: (described) => json(appMetadata(described)),
}

type Addressed = {
  readonly write: (described: Described) => string
  /** The address as the document writes it. */
  readonly escaped: (base: string) => string
  readonly contentSecurityPolicy?: string
}
const addressed: Readonly<Record<AddressedName, Addressed>> = {
  metadata: {
    write: interfacePage,
    escaped: (base) => html`${base}`.markup,
    contentSecurityPolicy: pagePolicy,
  },
  types: {
    write: (described) => json(typesMetadata(described)),
    escaped: (base) => JSON.stringify(base).slice(1, -1),
  },
}

/** The maximum number of options in a query of `/types`. The longest list of options has half as many. */
const maxOptions = 32

/**
 * Descriptions of the interface (R6). Anybody may read them, so each is rendered once for all callers, on first use: a Host
 * header costs no rendering.
 */
export class DescribedInterface {
  readonly #options: DescribedOptions
  readonly #stored: Readonly<Record<StoredName, Lazy<HttpAnswer>>>
  /** The text before, between and after the places of the address. */
  readonly #addressed: Readonly<Record<AddressedName, Lazy<readonly string[]>>>

  /** `rendered` is called for each rendering. */
  constructor(options: DescribedOptions, rendered: (name: DocumentName) => void = () => {}) {
    this.#options = options
    // Random, so that no text of the document contains it.
    const place = `http://${randomUUID()}`
    const render = async (name: DocumentName, write: (described: Described) => string): Promise<string> => {
      const described = await describedAt(place, options)
      rendered(name)
      return write(described)
    }
    this.#stored = mapped(stored, (write, name) =>
      lazy(async () => {
        const plain = Buffer.from(await render(name, write))
        return answerOf(name, { stored: { plain, gzipped: await gzipped(plain) } })
      }),
    )
    this.#addressed = mapped(addressed, ({ write }, name) => lazy(async () => (await render(name, write)).split(place)))
  }

  /** `base` is the server's address as the caller knows it, from a Host header that has passed the check. */
  async answer(base: string, name: DocumentName): Promise<HttpAnswer> {
    if (name !== 'metadata' && name !== 'types') return await this.#stored[name].get()
    const { escaped, contentSecurityPolicy } = addressed[name]
    const body = (await this.#addressed[name].get()).join(escaped(base))
    return answerOf(name, { body, contentSecurityPolicy })
  }

  /**
   * The interface in a language, with the options in the query of this request. Throws BadRequest for too many options, and
   * for an option value that is not allowed.
   */
  types(base: string, name: LanguageName, query: readonly Pair[]): HttpAnswer {
    if (query.length > maxOptions) throw new Fault('BadRequest', `At most ${maxOptions} options are allowed here`)
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
    return answerOf(`types/${name}`, { body: language.file({ base, names: this.#options.names }, reading, new Date()) })
  }
}

const gzipped = promisify(gzip)

function mapped<K extends string, V, T>(all: Readonly<Record<K, V>>, make: (value: V, key: K) => T): Record<K, T> {
  const entries = Object.entries<V>(all) as [K, V][]
  return Object.fromEntries(entries.map(([key, value]) => [key, make(value, key)])) as Record<K, T>
}

const answerOf = (
  name: DocumentName | TypesPage,
  content: Pick<HttpAnswer, 'body' | 'stored' | 'contentSecurityPolicy'>,
): HttpAnswer => ({ status: 200, contentType: ownPages[name].contentType, ...content })

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
