/**
 * The answers of `svc serve` without credentials, and the cost of each: docs/reference/anonymous-paths.md.
 * `test/server/anonymous-paths.long.test.ts` compares the rows with a server, and fails for a path without one.
 */

/** The distinctions between the answers that are cached. */
export type CacheKey = keyof typeof cacheKeys

/** How many of 20 requests, each under another Host, render an answer. */
export const cacheKeys = {
  text: { renders: 0, meaning: 'none: the answer is a constant' },
  document: { renders: 1, meaning: 'none: one answer for all callers, plain and gzipped' },
  parts: { renders: 1, meaning: 'none: the address of the caller is inserted into one text for all callers' },
  types: {
    renders: 1,
    meaning:
      'none: date and address are inserted before one text for all callers; with options in the query, not cached',
  },
  run: { renders: 1, meaning: 'the results of the run, and what the caller may read; only JSON is cached' },
  samples: {
    renders: 20,
    meaning: 'the latest results, and what the caller may read; the other samples are not cached',
  },
  none: { renders: 20, meaning: 'not cached' },
} as const

export type AnonymousPath = {
  readonly key: CacheKey
  /** The bytes of an answer at most: a power of two, so that a new field does not change it. */
  readonly bytes: number
  /** The same for a caller that accepts gzip. Absent: the answer is never compressed. */
  readonly gzipped?: number
}

const kib = 1_024
const page = { key: 'none', bytes: 32 * kib } as const
const form = { key: 'none', bytes: 16 * kib } as const
const types = { key: 'types', bytes: 64 * kib } as const

/**
 * By the first path of a page, and the path of an operation. Operations also have paths with their name (`by name`) and for
 * arrays of requests (`batch`).
 */
export const anonymousPaths: Readonly<Record<string, AnonymousPath>> = {
  '/': page,
  '/board': page,
  '/badge/{Type}/{Monitor}.svg': { key: 'none', bytes: 128 },
  '/sign-in': form,
  '/drills/opened/{Token}': form,
  '/forms/silence': form,
  '/forms/acknowledge': form,
  '/forms/end-silence': form,
  '/livez': { key: 'text', bytes: 8 },
  '/readyz': { key: 'text', bytes: 8 },
  '/nodes/speaker': { key: 'text', bytes: 8 },
  '/metrics': { key: 'samples', bytes: 16 * kib },
  '/metadata': { key: 'parts', bytes: 128 * kib },
  '/openapi.json': { key: 'document', bytes: 256 * kib, gzipped: 32 * kib },
  '/openapi-all.json': { key: 'document', bytes: 4_096 * kib, gzipped: 64 * kib },
  '/metadata/app.json': { key: 'document', bytes: 128 * kib, gzipped: 8 * kib },
  '/types/metadata.json': { key: 'parts', bytes: 128 * kib },
  '/types/csharp': types,
  '/types/java': { ...types, bytes: 128 * kib },
  '/types/kotlin': types,
  '/types/python': types,
  '/types/typescript': types,
  '/types/typescript.d': { ...types, bytes: 32 * kib },
  '/healthcheck': { key: 'run', bytes: kib },
  'HealthCheckRequest by name': { key: 'run', bytes: kib },
  'HealthCheckRequest batch': { key: 'none', bytes: kib },
  '/server-types': { key: 'none', bytes: 128 },
  'GetServerTypes by name': { key: 'none', bytes: 128 },
  '/auth': { key: 'none', bytes: 512 },
  '/auth/{provider}': { key: 'none', bytes: kib },
  'Authenticate by name': { key: 'none', bytes: 512 },
  '/access-token': { key: 'none', bytes: 512 },
  'GetAccessToken by name': { key: 'none', bytes: 512 },
}
