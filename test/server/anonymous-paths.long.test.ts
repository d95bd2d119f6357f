import { writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { loadConfig } from '../../src/core/config/index.ts'
import { type OwnPage, ownPages } from '../../src/core/server/routes.ts'
import { anonymousPaths, cacheKeys } from '../../tools/anonymous-paths.ts'
import { temporaryFolder } from '../support/suite/temporary-folder.ts'
import { type Accounts, startAccounts } from './accounts.ts'
import { isAnswered, requestOf, type Target, targetsOf } from './authorization-matrix.ts'
import { type Row, rows } from './authorization-table.ts'

const counted = vi.hoisted(() => {
  const count = { renders: 0 }
  /** The functions of a module, of which the named ones count their calls. */
  const counting =
    (...names: readonly string[]) =>
    async (original: <T>() => Promise<T>): Promise<object> => {
      const module = { ...(await original<Record<string, unknown>>()) }
      for (const name of names) {
        const before = module[name] as (...args: readonly unknown[]) => unknown
        module[name] = (...args: readonly unknown[]): unknown => {
          count.renders += 1
          return before(...args)
        }
      }
      return module
    }
  return { count, counting }
})

// Everything that writes an answer.
vi.mock('../../src/core/server/response.ts', counted.counting('dtoAnswer', 'faultAnswer', 'encoded'))
vi.mock('../../src/core/server/pages/page-frame.ts', counted.counting('framed', 'headOf'))
vi.mock('../../src/core/checks/reports/prometheus.ts', counted.counting('exposition'))
vi.mock('../../src/core/protocol/wire/index.ts', counted.counting('encodeJson'))
vi.mock('../../src/core/protocol/metadata/languages/source.ts', counted.counting('typesOf'))
vi.mock('../../src/core/server/documents.ts', async (original) => {
  const module = await original<typeof import('../../src/core/server/documents.ts')>()
  return {
    ...module,
    DescribedInterface: class extends module.DescribedInterface {
      constructor(options: ConstructorParameters<typeof module.DescribedInterface>[0]) {
        super(options, () => {
          counted.count.renders += 1
        })
      }
    },
  }
})

const tcp = (name: string, host: string): string => `{kind: tcp, name: ${name}, host: ${host}, port: 1}`
const yaml = `types:
  Sql: {host: false, monitors: [${tcp('orders', '127.0.0.9')}]}
  App: {host: false, monitors: [${tcp('shop', '127.0.0.8')}]}
`
const folder = temporaryFolder()
let site: Accounts
beforeAll(async () => {
  writeFileSync(join(folder, 'svc.yaml'), yaml, { mode: 0o600 })
  const { types } = await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder })
  site = await startAccounts({}, undefined, undefined, types)
})
afterAll(() => site.close())

/** By the table of who may do what, which has every operation, page and verb. */
const targetsThat = (isAnonymous: boolean): readonly Target[] =>
  Object.entries(rows)
    .filter(([, { needs }]) => (needs === 'nothing') === isAnonymous)
    .flatMap(([name, row]) => targetsOf(name, row))
    .filter((target) => isAnswered(target) && target.verb !== 'HEAD' && !isSpelling(target))
const targets = targetsThat(true)
const refused = targetsThat(false)

/** Whether it is another spelling of a path (R1). */
function isSpelling({ path, style }: Target): boolean {
  return style === 'route' && (path.endsWith('/') || (!path.includes('{') && path !== path.toLowerCase()))
}

function keyOf({ name, path, style }: Target): string {
  const [operation = ''] = name.split(' ')
  if (style === 'name') return `${operation} by name`
  if (style === 'batch') return `${operation} batch`
  return style === 'page' ? operation : path.replace(/\.(?:json|csv)$/, '')
}

const byKey = Map.groupBy(targets, keyOf)

/** Sends a request of a stranger from elsewhere. */
async function ask(target: Target, port: number, more: Readonly<Record<string, string>> = {}, query = '') {
  const { row, path } = target
  const sent = requestOf(
    { site, made: { session: 'none', refreshToken: 'none', silence: 'none' } },
    {
      target: { ...target, row: { ...row, ask: (made) => fieldsOf(row, path, made) } },
      credential: { caller: 'a stranger', way: 'nothing', headers: {} },
      site: 'no browser',
      place: 'elsewhere',
      host: 'own',
      isOverridden: false,
      contradicts: false,
      body: target.style === 'page' ? 'form' : 'json',
      answer: 'default',
      isInQuarter: true,
    },
  )
  const { method, body = '' } = sent
  const typed = body === '' ? {} : { 'content-type': sent.type, 'content-length': String(Buffer.byteLength(body)) }
  const headers = { ...sent.headers, host: `localhost:${port}`, ...typed, ...more }
  counted.count.renders = 0
  return await new Promise<{ status: number; encoding: string | undefined; bytes: Buffer; isRendered: boolean }>(
    (resolve, reject) => {
      const outgoing = request(
        { host: '127.0.0.1', port: site.port, path: sent.path + query, method, headers, agent: false },
        (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk: Buffer) => chunks.push(chunk))
          response.on('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              encoding: response.headers['content-encoding'],
              bytes: Buffer.concat(chunks),
              isRendered: counted.count.renders > 0,
            }),
          )
        },
      )
      outgoing.on('error', reject).end(body)
    },
  )
}

/** A failed sign-in is slowed down: what could be one has only the fields of its path. */
function fieldsOf({ ask: fields, onlyRefused }: Row, path: string, made: Parameters<NonNullable<Row['ask']>>[0]) {
  const all = Object.entries(fields?.(made) ?? {})
  return Object.fromEntries(onlyRefused ? all.filter(([name]) => path.includes(`{${name}}`)) : all)
}

/** Removes the differences between answers that are not rendered anew. */
const withoutAddress = (bytes: Buffer): string =>
  bytes
    .toString()
    .replaceAll(/localhost:\d+/g, 'localhost')
    .replace(/^Date: .+$/m, '')
    .replace(/"CorrelationId":"[^"]+"/, '')

const ports = Array.from({ length: 20 }, (_, at) => at + 1)
/** The pages and operations that have been rendered: another path of theirs has the same cache. */
const rendered = new Set<string>()

/** The paths without a row, and the rows without a path. */
function differences(pages: readonly OwnPage[]): readonly string[] {
  const paths = new Set([...byKey.keys(), ...pages.map(({ paths: [first] }) => first)])
  return [
    ...[...paths].filter((path) => !Object.hasOwn(anonymousPaths, path)),
    ...Object.keys(anonymousPaths).filter((path) => !paths.has(path)),
  ]
}

test('S3 R6 every path that answers strangers has a row in the table of what an answer costs', () => {
  expect(differences(Object.values(ownPages))).toEqual([])
})

test('S3 R6 a page without a row is found', () => {
  expect(differences([...Object.values(ownPages), { ...ownPages.metrics, paths: ['/dump'] }])).toEqual(['/dump'])
})

test('S3 every other path refuses strangers in less than 1 KiB', async () => {
  expect(refused.length).toBeGreaterThan(200)
  for (const target of refused.filter(({ style, row }) => style !== 'page' && !row.isMistake)) {
    const { status, bytes } = await ask(target, 1)
    expect([target.path, status]).toEqual([target.path, expect.toSatisfy((code) => code === 401 || code === 403)])
    expect([target.path, bytes.length < 1_024]).toEqual([target.path, true])
  }
})

test.each(Object.keys(anonymousPaths))(
  'S3 R6 %s: 20 requests under 20 Hosts are rendered as often, and answered with as many bytes, as the table says',
  async (key) => {
    const { key: cache, bytes, gzipped } = anonymousPaths[key] ?? expect.fail()
    const { renders } = cacheKeys[cache]
    const sizes: number[] = []
    for (const [at, target] of (byKey.get(key) ?? []).entries()) {
      const answers = []
      // The others differ in their bytes at most.
      for (const port of at === 0 ? ports : [1]) answers.push(await ask(target, port))
      sizes.push(...answers.map((answer) => answer.bytes.length))
      const count = answers.filter(({ isRendered }) => isRendered).length
      // The first one is a GET in JSON, if there is one. A POST may redirect.
      if (at === 0 && renders > 1) expect(count).toBe(renders)
      if (at === 0 && renders <= 1) {
        const texts = new Set(answers.map((answer) => withoutAddress(answer.bytes)))
        // A new run may begin in between.
        expect(texts.size).toBeLessThanOrEqual(cache === 'run' ? 2 : 1)
        if (rendered.has(target.name)) expect(count).toBeLessThanOrEqual(texts.size)
        else expect(count).toBe(texts.size * renders)
      }
      rendered.add(target.name)
      const compressed = await ask(target, 1, { 'accept-encoding': 'gzip' })
      expect([answers[0]?.encoding, compressed.encoding]).toEqual([undefined, gzipped && 'gzip'])
      if (gzipped === undefined) continue
      expect(gunzipSync(compressed.bytes)).toEqual(answers[0]?.bytes)
      expect(nextPower(compressed.bytes.length, gzipped)).toBe(gzipped)
    }
    const largest = Math.max(...sizes)
    expect([largest, nextPower(largest, bytes)]).toEqual([largest, bytes])
  },
)

/** The bound of a size: the next power of two, or the declared one unless it is more than four times the size. */
const nextPower = (size: number, declared: number): number =>
  size <= declared && size * 4 > declared ? declared : 2 ** Math.ceil(Math.log2(size))

test.each(Object.keys(anonymousPaths).filter((key) => anonymousPaths[key]?.key === 'types'))(
  'S3 R6 %s with options in the query is written for each request, and no larger',
  async (key) => {
    const [target = expect.fail()] = byKey.get(key) ?? []
    const answers = []
    for (const port of ports) answers.push(await ask(target, port, {}, '?IncludeTypes=Authenticate.*'))
    expect(answers.map(({ status, isRendered }) => [status, isRendered])).toEqual(ports.map(() => [200, true]))
    expect(answers.every((answer) => answer.bytes.length <= (anonymousPaths[key]?.bytes ?? 0))).toBe(true)
  },
)
