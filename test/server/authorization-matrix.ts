import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { loadConfig } from '../../src/core/config/index.ts'
import { type Accounts, bearer, by, startAccounts } from './accounts.ts'
import {
  type CallerRow,
  callers,
  hidden,
  type Made,
  password,
  places,
  type Row,
  rows,
  sites,
  subjects,
  type Value,
} from './authorization-table.ts'

/** Sends what `authorization-table.ts` describes. Imports nothing of vitest: planted defects run in child processes. */

/** How a credential travels. A browser adds the ambient ones by itself. */
const ways = {
  nothing: { isAmbient: false },
  bearer: { isAmbient: false },
  'session header': { isAmbient: false },
  'session cookie': { isAmbient: true },
  'token cookie': { isAmbient: true },
  basic: { isAmbient: true },
} as const
type Way = keyof typeof ways
type Headers = Readonly<Record<string, string>>

/** A server, and the headers of each caller by the way of its credential. */
export type Cast = {
  readonly site: Accounts
  /** The path of `serve.socket`. */
  readonly socket: string | undefined
  readonly made: Made
  readonly credentials: readonly { readonly caller: string; readonly way: Way; readonly headers: Headers }[]
  readonly close: () => Promise<void>
}

const hour = 3_600_000
const tcp = (name: string, host: string): string => `{kind: tcp, name: ${name}, host: ${host}, port: 1}`
const yaml = `types:
  Sql: {host: false, monitors: [${tcp('zq-orders', '127.0.0.9')}]}
  App: {host: false, monitors: [${tcp('zq-shop', '127.0.0.8')}]}
notify:
  - {name: zq-pager, webhook: {url: 'http://127.0.0.1:1/'}}
`

export async function startCast(): Promise<Cast> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-authorization-'))
  writeFileSync(join(folder, 'svc.yaml'), yaml, { mode: 0o600 })
  const { types, notify } = await loadConfig({ env: { SVC_HOME: folder }, platform: process.platform, home: folder })
  // Windows has no such sockets.
  const socket = process.platform === 'win32' ? undefined : join(folder, 'svc.sock')
  const site = await startAccounts({ basic: true, socket }, undefined, undefined, types, undefined, { notify })
  const database = new DatabaseSync(site.store, { timeout: 5_000 })
  try {
    const ann = bearer((await site.signIn()).BearerToken)
    const vic = { roles: ['Held'], permissions: ['held'] }
    await site.admin.users.add({ userName: 'zq-vic', password, ...vic }, by)
    await site.signIn({ UserName: 'zq-vic' })
    const credentials: Cast['credentials'][number][] = []
    for (const [at, [caller, row]] of Object.entries(callers).entries()) {
      const all = await credentialsOf(site, database, { userName: `caller-${at}`, row, ann })
      credentials.push(...all.map(([way, headers]) => ({ caller, way, headers })))
    }
    const ended = await site.signIn()
    const mine = { ...ann, 'x-ss-id': ended.SessionId }
    await site.post('/auth/logout', {}, { 'x-ss-id': mine['x-ss-id'] })
    const { json: sessions } = await askAs(site, 'GET', '/sessions?UserName=zq-vic', ann)
    const silence = { Monitors: ['App/*'], For: 'PT2H', Reason: 'zq-reason' }
    const { json: silenced } = await askAs(site, 'POST', '/silences/monitors', ann, silence)
    for (const type of ['Sql', 'App'])
      await askAs(site, 'GET', `/healthcheck?ExecutionMode=Basic&ServerType=${type}`, ann)
    const made = {
      session: (sessions as { Sessions: { Id: string }[] }).Sessions[0]?.Id ?? '',
      refreshToken: ended.RefreshToken,
      silence: (silenced as { Silence: { Id: string } }).Silence.Id,
    }
    return {
      site,
      socket,
      made,
      credentials,
      close: async () => {
        agent.destroy()
        await site.close()
        rmSync(folder, { recursive: true, force: true })
      },
    }
  } finally {
    database.close()
  }
}

const askAs = async (site: Accounts, method: string, path: string, headers: Headers, body?: object) => {
  const sent = body && { body: JSON.stringify(body), type: 'application/json' }
  const answer = await send(site.port, {
    method,
    path,
    headers: { ...headers, ...accepted('application/json') },
    ...sent,
  })
  return { ...answer, json: JSON.parse(answer.text) as unknown }
}
const accepted = (type: string): Headers => ({ accept: type })

type NewCaller = { readonly userName: string; readonly row: CallerRow; readonly ann: Headers }

/** Adds the user of a caller, issues its credentials, and does to them what has happened since. */
async function credentialsOf(
  site: Accounts,
  database: DatabaseSync,
  { userName, row, ann }: NewCaller,
): Promise<readonly (readonly [Way, Headers])[]> {
  const { user, key, since, forATime, assigned } = row
  if (!user) return [['nothing', {}]]
  const { admin } = site
  await admin.users.add(
    { userName, password, roles: [...(user.roles ?? [])], permissions: [...(user.permissions ?? [])] },
    by,
  )
  if (forATime) {
    const Meta = { expires: new Date(Date.now() + hour).toISOString() }
    await site.post('/assignroles', { UserName: userName, Roles: ['Admin'], Meta }, ann)
  }
  if (assigned) await site.post('/assignroles', { UserName: userName, Permissions: assigned }, ann)
  const { id } = database.prepare('SELECT id FROM users WHERE userName = ?').get(userName) as { id: string }
  const credentials = key ? await keyOf(site, userName, key) : await sessionOf(site, userName)
  const set = (table: string, column: string): void => {
    database.prepare(`UPDATE "${table}" SET "${column}" = ? WHERE userId = ?`).run(Date.now() - hour, id)
  }
  if (since === 'Admin has ended') set('grants', 'endsAt')
  if (since === 'disabled alone') database.prepare('UPDATE users SET disabled = 1 WHERE id = ?').run(id)
  if (since === 'another epoch') database.prepare('UPDATE users SET epoch = epoch + 1 WHERE id = ?').run(id)
  if (since === 'named by an earlier version') {
    database.prepare(`UPDATE grants SET name = 'quiet' WHERE userId = ? AND name = 'silence'`).run(id)
    database.prepare(`UPDATE apiKeys SET permissions = '["quiet"]' WHERE userId = ?`).run(id)
  }
  if (since === 'disabled') await admin.users.disable(userName, by)
  if (since === 'removed') await admin.users.remove(userName, by)
  if (since === 'new password') await admin.users.passwd(userName, `${password}-new`, by)
  if (since === 'revoked' && key) await admin.keys.revoke(userName, by)
  if (since === 'revoked' && !key) await site.post('/sessions/end', { UserName: userName, All: true }, ann)
  if (since === 'expired') {
    for (const [table, column] of [
      ['sessions', 'endsAt'],
      ['accessTokens', 'expiresAt'],
      ['apiKeys', 'expiresAt'],
    ] as const) {
      set(table, column)
    }
  }
  // The password of a user who is gone is a failed sign-in, which is slowed down.
  return since === undefined || since === 'Admin has ended'
    ? credentials
    : credentials.filter(([way]) => way !== 'basic')
}

async function keyOf({ admin }: Accounts, userName: string, { roles, permissions }: NonNullable<CallerRow['key']>) {
  const limits = { ...(roles && { roles: [...roles] }), ...(permissions && { permissions: [...permissions] }) }
  const { secret } = await admin.keys.create({ name: userName, userName, ...limits }, by)
  return [
    ['bearer', bearer(secret)],
    ['token cookie', { cookie: `ss-tok=${secret}` }],
  ] as const satisfies readonly (readonly [Way, Headers])[]
}

async function sessionOf(site: Accounts, userName: string) {
  const { BearerToken, SessionId, cookie } = await site.signIn({ UserName: userName })
  return [
    ['bearer', bearer(BearerToken)],
    ['session header', { 'x-ss-id': SessionId }],
    ['session cookie', { cookie }],
    ['token cookie', { cookie: `ss-tok=${BearerToken}` }],
    ['basic', { authorization: `Basic ${Buffer.from(`${userName}:${password}`).toString('base64')}` }],
  ] as const satisfies readonly (readonly [Way, Headers])[]
}

/** Everything that a request which is refused must not change. */
export function stateOf({ site }: Cast): ReadonlyMap<string, string> {
  const database = new DatabaseSync(site.store, { timeout: 5_000, readOnly: true })
  try {
    const tables = ['users', 'names', 'grants', 'apiKeys', 'sessions', 'accessTokens', 'refreshTokens', 'digestSecrets']
    const others = ['identities', 'claimedRoles', 'heartbeats', 'quiets']
    // svc itself removes what has ended.
    const hasNotEnded: Readonly<Record<string, string>> = {
      grants: 'WHERE endsAt IS NULL OR endsAt > ?1',
      sessions: 'WHERE endsAt > ?1',
      accessTokens: 'WHERE expiresAt > ?1',
    }
    const read = (table: string) => {
      const where = hasNotEnded[table]
      const statement = database.prepare(`SELECT * FROM "${table}" ${where ?? ''} ORDER BY 1`)
      return where === undefined ? statement.all() : statement.all(Date.now())
    }
    return new Map([...tables, ...others].map((table) => [table, JSON.stringify(read(table))]))
  } finally {
    database.close()
  }
}

const allVerbs = ['GET', 'HEAD', 'POST', 'DELETE', 'OPTIONS', 'PUT', 'PATCH'] as const
type Verb = (typeof allVerbs)[number]

/** A path of a row, with a verb that it answers or not. */
export type Target = {
  readonly name: string
  readonly row: Row
  readonly path: string
  readonly verb: Verb
  readonly verbs: readonly Verb[]
  /** How the path names the operation: by one of its own, by its name (R2), or by its name for a batch (R3). */
  readonly style: 'page' | 'route' | 'name' | 'batch'
  /** The format that the path has, if it has one. */
  readonly format: 'json' | 'csv' | 'jsv' | undefined
}

const verbsOf = (text: string): readonly Verb[] => {
  const verbs = text.split(' ') as Verb[]
  return verbs.includes('GET') ? [...verbs, 'HEAD'] : verbs
}
const prefixes = [
  ['/json/reply', 'json'],
  ['/json/oneway', 'json'],
  ['/csv/reply', 'csv'],
  ['/csv/oneway', 'csv'],
  ['/jsv/reply', 'jsv'],
  ['/jsv/oneway', 'jsv'],
  ['/api', undefined],
] as const

/** Every path of a row with every verb: with a format as a suffix, by name, in other letter case, and in a batch. */
export function targetsOf(name: string, row: Row): readonly Target[] {
  const isPage = name.startsWith('/')
  const operation = name.split(' ')[0] ?? ''
  const own = Object.entries(row.at).flatMap(([path, text]) => {
    const forms = isPage
      ? [path]
      : [path, `${path}/`, ...(path.includes('{') ? [] : [`${path}.json`, `${path}.csv`, path.toUpperCase()])]
    return forms.map((form) => {
      const format = /\.(json|csv)$/.exec(form)?.[1] as 'json' | 'csv' | undefined
      return {
        path: form,
        verbs: verbsOf(text),
        style: isPage ? ('page' as const) : ('route' as const),
        format: isPage ? undefined : format,
      }
    })
  })
  const replies =
    row.reply === undefined
      ? []
      : prefixes.map(([prefix, format]) => {
          return { path: `${prefix}/${operation}`, verbs: verbsOf(row.reply ?? ''), style: 'name' as const, format }
        })
  const batches =
    row.reply === undefined
      ? []
      : (['json', 'csv', 'jsv'] as const).map((format) => {
          return {
            path: `/${format}/reply/${operation}[]`,
            verbs: verbsOf('POST GET'),
            style: 'batch' as const,
            format,
          }
        })
  return [...own, ...replies, ...batches].flatMap((target) => allVerbs.map((verb) => ({ ...target, name, row, verb })))
}

export type Case = {
  readonly target: Target
  readonly credential: Cast['credentials'][number]
  readonly site: string
  readonly place: string
  readonly host: 'own' | 'foreign'
  /** How the verb, the request and the wish for a format are written. */
  readonly isOverridden: boolean
  /** The query names another subject than the path or the body (N7). */
  readonly contradicts: boolean
  readonly body: 'json' | 'form' | 'csv' | 'jsv'
  readonly answer: 'default' | 'accept csv' | 'format=jsv' | 'callback'
  /** A quarter of all cases, for paths of which there are many. */
  readonly isInQuarter: boolean
}

/** The expected answer of a case, from the table alone. */
function expectedOf({ target, credential, site, place, host, isOverridden, contradicts, answer }: Case) {
  const isFar = places[place]?.reads !== true
  const { row, verb, verbs, style } = target
  const { is } = sites[site] ?? { is: 'none' }
  const isCallback = answer === 'callback'
  const { isAmbient } = ways[credential.way]
  // Pages know no HTTP Basic, except for /metrics, and a page that loads a script cannot add a credential of its own.
  const isIgnored =
    (isCallback && isAmbient) || (style === 'page' && credential.way === 'basic' && target.name !== '/metrics')
  const rights = isIgnored ? [] : (callers[credential.caller]?.may ?? [])
  const reads = (right: 'some' | 'all'): boolean => rights.includes(right) || !isFar
  const leaks = [...(reads('some') ? [] : hidden.some), ...(reads('all') ? [] : hidden.all)]
  // A page shows what its reader may read beside why it refuses something.
  const only = (...statuses: number[]) => ({
    statuses,
    leaks: style === 'page' ? leaks : [...hidden.some, ...hidden.all],
  })
  const realVerb = isOverridden ? 'POST' : verb
  const orMistake = row.isMistake ? [400] : []

  if (host === 'foreign' && !row.anyHost) return only(421)
  if (!verbs.includes(verb) && verb !== 'OPTIONS') return only(405)
  if (verb === 'OPTIONS') return only(200)
  if (style === 'batch' && !row.batch) return only(400)
  // A batch without a body is empty.
  if (style === 'batch' && verb !== 'POST')
    return { statuses: is === 'foreign' && row.reads ? [403] : [200, 403], leaks }
  if (isCallback && (is === 'foreign' || (is === 'none' && isFar))) return only(403)
  if (row.reads && is === 'foreign') return only(403)
  if (contradicts) return only(400, ...(isGuarded() && isForeignChange() ? [403] : []))
  if (isGuarded() && isForeignChange()) return only(403, ...orMistake)
  if (row.needs === 'nothing') return { statuses: row.answers, leaks }
  if (row.reads && !isFar) return { statuses: row.answers, leaks }
  if (rights.includes(row.needs)) return { statuses: row.answers, leaks: row.reads ? leaks : [] }
  return only(rights.length > 0 ? 403 : 401, ...orMistake)

  function isGuarded(): boolean {
    if (row.reads) return false
    if (row.guard === 'always') return verb !== 'HEAD'
    if (row.guard === 'posts') return verb !== 'GET' && verb !== 'HEAD'
    return style !== 'page' && isAmbient && !isIgnored
  }
  function isForeignChange(): boolean {
    if (is === 'none') return realVerb === 'GET' && isFar && credential.way.endsWith('cookie')
    return is === 'foreign' || (is === 'typed' && realVerb !== 'GET')
  }
}

/** A number that looks random and is always the same for a text. */
function hashOf(text: string): number {
  let hash = 2_166_136_261
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 16_777_619) >>> 0
  return (hash ^ (hash >>> 13)) >>> 0
}
const pick = <T>(list: readonly T[], text: string): T => list[hashOf(text) % list.length] as T
const siteNames = Object.keys(sites)

/** The case of a target and a credential, with everything else chosen by a hash of both. */
function caseOf(target: Target, credential: Case['credential']): Case {
  const text = [target.name, target.path, target.verb, credential.caller, credential.way].join('|')
  const { style, verb, verbs, format } = target
  const mayOverride =
    verb !== 'OPTIONS' && verb !== 'HEAD' && verb !== 'POST' && style !== 'batch' && verbs.includes(verb)
  const isOverridden = mayOverride && hashOf(`override|${text}`) % 6 === 0
  const plain = style === 'page' || style === 'batch'
  const mayCall = !plain && verb === 'GET' && !isOverridden && (format === undefined || format === 'json')
  const answers = plain ? ['default'] : ['default', 'accept csv', 'format=jsv', ...(mayCall ? ['callback'] : [])]
  return {
    target,
    credential,
    // Most callers are no browsers.
    site: hashOf(`browser|${text}`) % 2 === 0 ? 'no browser' : pick(siteNames, `site|${text}`),
    place: pick(Object.keys(places), `place|${text}`),
    host: hashOf(`host|${text}`) % 16 === 0 ? 'foreign' : 'own',
    isOverridden,
    contradicts: hashOf(`contradicts|${text}`) % 8 === 0 && subjectOf(target) !== undefined,
    body: style === 'page' ? 'form' : pick(['json', 'form', 'csv', 'jsv'], `body|${text}`),
    answer: pick(answers, `answer|${text}`) as Case['answer'],
    isInQuarter: hashOf(`quarter|${text}`) % 4 === 0,
  }
}

/** The field of a request with a subject that its query can contradict. */
function subjectOf({ row, path, style, verb }: Target): string | undefined {
  if (style === 'page' || style === 'batch') return undefined
  const fields = Object.keys(row.ask?.(nothingMade) ?? {})
  return subjects.find(
    (name) => fields.includes(name) && (path.includes(`{${name}}`) || verb === 'POST' || verb === 'DELETE'),
  )
}
const nothingMade: Made = { session: '', refreshToken: '', silence: '' }

/** `all`: the slow tier. `names`: some rows only. */
export type Extent = { readonly all: boolean; readonly names?: readonly string[] }

/**
 * The cases of the rows. `all`: every path with every caller and every way of its credential; of the paths that name an
 * operation (R2), a quarter. Otherwise every row with a quarter of the callers, once. Verbs that a path does not have, and
 * documents that are the same for everybody, are tried with a few callers.
 */
export const casesOf = ({ credentials }: Cast, { all, names = Object.keys(rows) }: Extent): readonly Case[] =>
  names.flatMap((name) => {
    const row = rows[name] as Row
    const targets = targetsOf(name, row)
    const answered = targets.filter(isAnswered)
    const others = targets.filter((target) => !isAnswered(target) && !isOfAnotherRow(target))
    const few = (target: Target, count: number): readonly Case[] =>
      Array.from({ length: count }, (_, at) => caseOf(target, pick(credentials, `${target.path} ${target.verb} ${at}`)))
    const refused = (all ? others : others.slice(0, 2)).flatMap((target) => few(target, all ? 3 : 1))
    if (row.isDocument) return [...answered.flatMap((target) => few(target, 3)), ...refused]
    if (!all)
      return [
        ...Object.keys(callers)
          .filter((caller) => hashOf(`${caller} ${name}`) % 4 === 0)
          .map(once),
        ...refused,
      ]
    const cases = answered.flatMap((target) => credentials.map((credential) => caseOf(target, credential)))
    return [...cases.filter(({ target, isInQuarter }) => target.style !== 'name' || isInQuarter), ...refused]

    function once(caller: string): Case {
      const own = credentials.filter((credential) => credential.caller === caller)
      return caseOf(pick(answered, `target of ${name} for ${caller}`), pick(own, `way of ${caller} for ${name}`))
    }
  })

export const isAnswered = ({ verb, verbs, row, style }: Target): boolean =>
  verbs.includes(verb) && (style !== 'batch' || (row.batch === true && verb === 'POST'))
/** Some rows share a path, and each has other verbs of it. */
const isOfAnotherRow = ({ name, path, verb, verbs }: Target): boolean =>
  !verbs.includes(verb) &&
  everyTarget().some((other) => other.name !== name && other.path === path && other.verbs.includes(verb))
let every: readonly Target[] | undefined
const everyTarget = (): readonly Target[] =>
  (every ??= Object.entries(rows).flatMap(([name, row]) => targetsOf(name, row)))

export type Outcome = { readonly sent: number; readonly mistakes: readonly string[] }

/**
 * Sends the cases: first those that are to be refused, after which nothing may have changed, and then the others. Each
 * mistake is a line. `stopAtFirst`: nothing more is sent after one.
 */
export async function runMatrix(cast: Cast, cases: readonly Case[], { stopAtFirst = false } = {}): Promise<Outcome> {
  const mistakes: string[] = []
  const judged = cases
    .map((one) => ({ one, expected: expectedOf(one) }))
    .filter(({ one: { target }, expected }) => !target.row.onlyRefused || expected.statuses !== target.row.answers)
  const isRefused = ({ expected }: (typeof judged)[number]): boolean =>
    !expected.statuses.some((status) => status < 400)
  const refused = judged.filter(isRefused)
  const answered = judged.filter((each) => !isRefused(each))
  const before = stateOf(cast)
  await inParallel(refused, check)
  for (const [table, content] of stateOf(cast)) {
    if (before.get(table) !== content)
      mistakes.push(`requests that should be refused have changed ${table}: ${content}, before: ${before.get(table)}`)
  }
  await inParallel(answered, check)
  return { sent: refused.length + answered.length, mistakes }

  async function check({ one, expected }: (typeof judged)[number]): Promise<void> {
    if (stopAtFirst && mistakes.length > 0) return
    const request = requestOf(cast, one)
    const { status, text } = await send(cast.site.port, request, places[one.place]?.onSocket && cast.socket)
    const leaked = expected.leaks.find((name) => text.includes(name) && !request.path.includes(name))
    if (expected.statuses.includes(status) && leaked === undefined) return
    const { target, credential, site, place } = one
    const who = `${credential.caller} by ${credential.way}, ${site}, ${place}`
    const what =
      leaked === undefined ? `${status} instead of ${expected.statuses.join(' or ')}` : `${status} with ${leaked}`
    mistakes.push(`${target.name}: ${request.method} ${request.path} of ${who}: ${what}: ${text.slice(0, 160)}`)
  }
}

const parallel = 8
async function inParallel<T>(list: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const queue = list.values()
  await Promise.all(
    Array.from({ length: parallel }, async () => {
      for (const one of queue) await work(one)
    }),
  )
}

type HttpRequest = {
  readonly method: string
  readonly path: string
  readonly headers: Headers
  readonly body?: string
  readonly type?: string
}

export function requestOf(
  { site, made }: { readonly site: Pick<Accounts, 'port'>; readonly made: Made },
  { target, credential, site: from, place, host, isOverridden, contradicts, body, answer }: Case,
): HttpRequest {
  const { row, style, verb } = target
  const fields = { ...row.ask?.(made) }
  const path = target.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = fields[name]
    delete fields[name]
    return String(value)
  })
  const own = `127.0.0.1:${site.port}`
  const headers: Record<string, string> = {
    ...credential.headers,
    ...places[place]?.headers,
    host: host === 'own' ? own : 'evil.example',
  }
  for (const [name, value] of Object.entries(sites[from]?.headers ?? {})) headers[name] = value.replace('OWN', own)
  if (isOverridden) headers['x-http-method-override'] = verb
  if (answer === 'accept csv') headers['accept'] = 'text/csv'
  const method = isOverridden ? 'POST' : verb
  const hasBody = method === 'POST' || method === 'DELETE'
  const query = new URLSearchParams(
    hasBody ? {} : Object.entries(fields).map(([name, value]) => [name, listText(value)] as [string, string]),
  )
  if (contradicts) query.set(subjectOf(target) ?? '', 'zq-other')
  if (answer === 'format=jsv') query.set('format', 'jsv')
  if (answer === 'callback') query.set('callback', 'cb')
  const suffix = query.size > 0 ? `?${query}` : ''
  const written = hasBody ? bodyOf(fields, body, style === 'batch') : {}
  return { method, path: `${path}${suffix}`, headers, ...written }
}

/** Lists and maps as forms, CSV and JSV have them. */
function listText(value: Value): string {
  if (typeof value !== 'object') return String(value)
  if (isList(value)) return `[${value.join(',')}]`
  return `{${Object.entries(value).map(([key, text]) => `${key}:${text ?? ''}`)}}`
}
const isList = (value: Exclude<Value, string | boolean>): value is readonly string[] => Array.isArray(value)

function bodyOf(
  fields: Readonly<Record<string, Value>>,
  format: Case['body'],
  isBatch: boolean,
): { body: string; type: string } {
  const entries = Object.entries(fields)
  if (isBatch || format === 'json' || entries.length === 0) {
    return { body: JSON.stringify(isBatch ? [fields] : fields), type: 'application/json' }
  }
  if (format === 'form') {
    const form = new URLSearchParams(entries.map(([name, value]) => [name, listText(value)] as [string, string]))
    return { body: form.toString(), type: 'application/x-www-form-urlencoded' }
  }
  if (format === 'jsv') {
    return {
      body: `{${entries.map(([name, value]) => `${name}:${listText(value)}`).join(',')}}`,
      type: 'application/jsv',
    }
  }
  const cells = entries.map(([, value]) => `"${listText(value)}"`)
  return { body: `${entries.map(([name]) => name).join(',')}\r\n${cells.join(',')}\r\n`, type: 'text/csv' }
}

const agent = new Agent({ keepAlive: true, maxSockets: parallel })

function send(
  port: number,
  { method, path, headers, body, type }: HttpRequest,
  socketPath?: string,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-type': type, 'content-length': String(Buffer.byteLength(body)) }
    const outgoing = httpRequest(
      {
        ...(socketPath ? { socketPath } : { host: '127.0.0.1', port }),
        path,
        method,
        headers: { ...headers, ...length },
        agent,
      },
      (incoming) => {
        const chunks: Buffer[] = []
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
        incoming.on('error', reject)
        incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, text: Buffer.concat(chunks).toString() }))
      },
    )
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}
