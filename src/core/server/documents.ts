import { type Lazy, lazy } from '../lazy.ts'
import { appMetadata, type Described, openapi, typescript, typesMetadata } from '../metadata/index.ts'
import { overHttp, reports } from '../reports/index.ts'
import type { ServeOptions } from '../service.ts'
import type { HttpAnswer } from './answer.ts'
import { interfacePage } from './interface-page.ts'
import { type OwnPage, ownPages } from './own-pages.ts'

export type DocumentName = 'metadata' | 'openapi' | 'typescript' | 'types' | 'app'

/** Base addresses remembered: the port in a Host header is the caller's to choose. */
const maxBases = 16

type Documents = Readonly<Record<DocumentName, HttpAnswer>>
/** The options that callers are told of. */
type ToldOptions = Pick<ServeOptions, 'jsonp' | 'basic' | 'names'>

/** R6: descriptions of the interface, made when first asked for, once for each address that callers know the server by. */
export class DescribedInterface {
  readonly #made = new Map<string, Lazy<Documents>>()
  readonly #options: ToldOptions

  constructor(options: ToldOptions) {
    this.#options = options
  }

  /** `base` is the server's address as the caller knows it, from a Host header that has been checked. */
  async answer(base: string, name: DocumentName): Promise<HttpAnswer> {
    let documents = this.#made.get(base)
    if (documents === undefined) {
      documents = lazy(() => make(base, this.#options))
      if (this.#made.size >= maxBases) this.#made.clear()
      this.#made.set(base, documents)
    }
    return (await documents.get())[name]
  }
}

async function make(base: string, options: ToldOptions): Promise<Documents> {
  const described = await describedAt(base, options)
  const json = (value: object): string => `${JSON.stringify(value)}\n`
  const page = interfacePage(described)
  return {
    metadata: { ...of('metadata', page.body), contentSecurityPolicy: page.contentSecurityPolicy },
    openapi: of('openapi', json(openapi(described))),
    typescript: of('typescript', typescript(described, new Date())),
    types: of('types', json(typesMetadata(described))),
    app: of('app', json(appMetadata(described))),
  }
}

const of = (name: DocumentName, body: string): HttpAnswer => ({
  status: 200,
  contentType: ownPages[name].contentType,
  body,
})

/** What a server at that address says of itself; of health answers also what they may look like beside JSON and CSV (F5). */
export async function describedAt(base: string, { jsonp, basic, names }: ToldOptions): Promise<Described> {
  const entries = [
    ...overHttp.format.map((name) => ({ name, by: 'format' as const })),
    ...Object.values(overHttp.accept).map((name) => ({ name, by: 'accept' as const })),
  ]
  const documents = await Promise.all(
    entries.map(async ({ name, by }) => ({ name, by, contentType: (await reports[name]()).default.contentType })),
  )
  return { base, jsonp, basic, names, pages: Object.values<OwnPage>(ownPages), reports: documents }
}
