/** The server's own pages, beside the operations of the interface: one row a page, read by the router and by OpenAPI. */
export type OwnPage = {
  /** The first is the one to write down; others answer the same. */
  readonly paths: readonly [string, ...string[]]
  readonly summary: string
  readonly contentType: string
  /** Whether it answers under any Host (S1). */
  readonly anyHost: boolean
}

const htmlType = 'text/html; charset=utf-8'
const jsonType = 'application/json; charset=utf-8'
const textType = 'text/plain; charset=utf-8'

export const ownPages = {
  page: {
    paths: ['/'],
    summary: 'Where each server type stands, for a person',
    contentType: htmlType,
    anyHost: false,
  },
  livez: {
    paths: ['/livez'],
    summary: 'Whether the process answers; asks no store and runs no monitor',
    contentType: textType,
    anyHost: true,
  },
  readyz: {
    paths: ['/readyz'],
    summary: 'Whether the store answers and the server is not stopping',
    contentType: textType,
    anyHost: true,
  },
  metrics: {
    paths: ['/metrics'],
    summary: 'The latest runs, requests and the process, for Prometheus; runs no monitor',
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    anyHost: false,
  },
  metadata: {
    paths: ['/metadata'],
    summary: 'The interface, for a person',
    contentType: htmlType,
    anyHost: false,
  },
  openapi: {
    paths: ['/openapi.json'],
    summary: 'The interface as OpenAPI 3.1',
    contentType: jsonType,
    anyHost: false,
  },
  typescript: {
    paths: ['/types/typescript'],
    summary: 'The interface as TypeScript, for @servicestack/client',
    contentType: textType,
    anyHost: false,
  },
  types: {
    paths: ['/types/metadata.json', '/types/metadata'],
    summary: 'The types and operations of the interface, for ServiceStack tools',
    contentType: jsonType,
    anyHost: false,
  },
  app: {
    paths: ['/metadata/app.json', '/metadata/app'],
    summary: 'This application and its interface, for ServiceStack tools',
    contentType: jsonType,
    anyHost: false,
  },
} as const satisfies Record<string, OwnPage>

export type PageName = keyof typeof ownPages
