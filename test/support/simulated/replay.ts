import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { bodies } from '../../client/recorded.ts'
import { type Generation, inDialect, type Traits, traits } from './replay-traits.ts'

export { generations } from './replay-traits.ts'

/** Who can sign in, with the same password. */
export const admin = 'alice'
export const plain = 'bob'
export const password = 'correct horse 9!'

export type ReplayOptions = {
  readonly generation: Generation
  /** Sign-ins give a session alone, as where no JWT provider is registered. */
  readonly sessionsOnly?: boolean
  /** The health operation: ServiceStack itself has none. */
  readonly health?: 'healthy' | 'failing' | 'absent'
  /**
   * How AssignRoles refuses: by the service itself, or by a filter before it, which sends no JSON; or a gateway before
   * the server sends everybody to its login page.
   */
  readonly refuses?: 'in the service' | 'in a filter' | 'with a login page'
  /** Answers to sign-ins carry no roles and permissions, as before ServiceStack 5. */
  readonly reportsRoles?: boolean
  /** Renewed tokens are refused again. */
  readonly neverContent?: boolean
}

export type ReplayRequest = {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export type Replay = {
  readonly url: string
  readonly requests: ReplayRequest[]
  /** The bytes of every answer with a body, the newest last. */
  readonly replies: string[]
  /** Access tokens and sessions that are good. */
  readonly alive: () => readonly string[]
  /** Every access token and session ends; refresh tokens stay good. */
  readonly expire: () => void
  readonly renewals: () => number
  readonly close: () => Promise<void>
}

type Dto = Readonly<Record<string, unknown>>
type Reply = { readonly status: number; readonly text: string; readonly type: string; readonly headers?: Headers }
type Headers = Readonly<Record<string, string | readonly string[]>>

/** A real HTTP server that answers as a server of that generation does. */
export async function replay(options: ReplayOptions): Promise<Replay> {
  const { generation, sessionsOnly = false, health = 'healthy', reportsRoles = true } = options
  const how = traits[generation]
  const requests: ReplayRequest[] = []
  const replies: string[] = []
  const alive = new Map<string, string>()
  const refresh = new Map<string, string>()
  const roles = new Map([
    [admin, ['Admin']],
    [plain, ['R1']],
  ])
  let made = 0
  let renewals = 0

  /** Twenty letters for a session, a JWT for a token: as long as they are there. */
  const secret = (kind: 'session' | 'access' | 'refresh'): string => {
    made += 1
    const unique = String(made).padStart(6, '0')
    if (kind === 'session') return `Hhe0hwcjBDYklC${unique}`
    const part = (claims: Dto): string => Buffer.from(JSON.stringify(claims)).toString('base64url')
    const exp = Math.floor(Date.now() / 1_000) + (kind === 'access' ? 14 : 365) * 86_400
    return `${part({ typ: kind === 'access' ? 'JWT' : 'JWTR', alg: 'HS256' })}.${part({ sub: 1, exp, jti: made })}.sig-_${unique}`
  }

  const json = (status: number, dto: Dto | string, headers?: Headers): Reply => {
    const text = typeof dto === 'string' ? dto : JSON.stringify(dto)
    return { status, text: inDialect(text, how), type: 'application/json; charset=utf-8', ...(headers && { headers }) }
  }
  const fault = (status: number, [code, message]: readonly [string, string], more: Dto = {}): Reply =>
    json(status, { ...more, ResponseStatus: { ErrorCode: code, Message: message, Errors: [] } })
  const lost = (): Reply => ({ status: 404, text: how.lost, type: how.lost === '' ? '' : 'text/plain; charset=utf-8' })
  const succeeded = how.emptyStatus ? { ResponseStatus: {} } : {}
  const factsOf = (user: string): Dto => ({
    UserId: user === admin ? '1' : '2',
    UserName: user,
    DisplayName: `The ${user}`,
    ProfileUrl: 'data:image/svg+xml,(cut)',
    ...(reportsRoles ? { Roles: roles.get(user) ?? [], Permissions: [] } : {}),
    ...(generation === '10.1'
      ? { AuthProvider: 'credentials', ReturnUrl: '/', RefreshTokenExpiry: '2046-11-20T10:00:00Z' }
      : {}),
    ...succeeded,
  })

  function signIn(body: Dto): Reply {
    const { UserName: user, Password: refreshToken, RememberMe: remember } = fieldsOf(body)
    const empty = [...(user ? [] : [['UserName', 'User Name']]), ...(refreshToken ? [] : [['Password', 'Password']])]
    if (empty.length > 0) return json(how.validation, empty.length === 2 ? bodies.emptySignIn : onlyPassword)
    if (!roles.has(String(user)) || refreshToken !== password) {
      return fault(401, ['Unauthorized', 'Invalid Username or Password'])
    }
    const name = String(user)
    const SessionId = secret('session')
    const cookies = [
      `ss-opt=${remember === true ? 'perm' : 'temp'}; path=/; expires=Sat, 20 Nov 2046 10:00:00 GMT; HttpOnly`,
      `${remember === true ? 'ss-pid' : 'ss-id'}=${SessionId}; path=/; HttpOnly`,
    ]
    if (sessionsOnly) {
      alive.set(SessionId, name)
      return json(200, { ...factsOf(name), SessionId }, { 'set-cookie': cookies })
    }
    const [access, again] = [secret('access'), secret('refresh')]
    alive.set(access, name)
    refresh.set(again, name)
    if (how.tokens === 'body') {
      return json(
        200,
        { ...factsOf(name), SessionId, BearerToken: access, RefreshToken: again },
        { 'set-cookie': cookies },
      )
    }
    const tokens = [
      `ss-tok=${access}; expires=Sat, 20 Nov 2046 10:00:00 GMT; path=/; samesite=lax; httponly`,
      `ss-reftok=${encodeURIComponent(again)}; expires=Sat, 20 Nov 2046 10:00:00 GMT; path=/; samesite=lax; httponly`,
    ]
    return json(
      200,
      { ...factsOf(name), SessionId },
      { 'set-cookie': [...cookies, ...tokens], 'x-cookies': 'ss-tok,ss-reftok' },
    )
  }

  function renew(body: Dto): Reply {
    const refreshToken = fieldsOf(body)['RefreshToken']
    const user = refresh.get(String(refreshToken))
    if (user === undefined) return fault(401, ['TokenException', 'Token has expired'])
    renewals += 1
    const access = secret('access')
    if (!options.neverContent) alive.set(access, user)
    if (how.tokens === 'body') return json(200, { AccessToken: access })
    return json(200, {}, { 'set-cookie': [`ss-tok=${access}; path=/; samesite=lax; httponly`] })
  }

  /** The header beats all; a RememberMe session is one id space with the others. */
  const presented = ({ headers }: ReplayRequest): string => {
    const [, bearer] = /^bearer (.+)$/i.exec(headers.authorization ?? '') ?? []
    const session = headers['x-ss-opt'] === 'perm' ? headers['x-ss-pid'] : headers['x-ss-id']
    return bearer ?? String(session ?? '')
  }

  function change(request: ReplayRequest, user: string | undefined, body: Dto, adds: boolean): Reply {
    const none = { AllRoles: [], ...(adds ? { AllPermissions: [] } : {}) }
    if (user === undefined) {
      if (options.refuses !== 'in a filter') return fault(401, how.stranger, none)
      return {
        status: 401,
        text: '',
        type: '',
        headers: { 'www-authenticate': 'credentials realm="/auth/credentials"' },
      }
    }
    if (!roles.get(user)?.includes('Admin')) {
      if (options.refuses !== 'in a filter') return fault(403, how.powerless, none)
      const text = `Forbidden\n\nRequest.HttpMethod: ${request.method}\nRequest.PathInfo: ${request.path}`
      return { status: 403, text, type: 'text/plain; charset=utf-8' }
    }
    const { UserName: name, Roles: names } = fieldsOf(body)
    const roleLists = roles.get(String(name))
    if (!roleLists) return fault(404, ['NotFound', String(name)], none)
    const listed = Array.isArray(names) ? names.map(String) : []
    const after = adds ? [...new Set([...roleLists, ...listed])] : roleLists.filter((role) => !listed.includes(role))
    roles.set(String(name), after)
    return json(200, { AllRoles: after, AllPermissions: [] })
  }

  function healthOf(request: ReplayRequest): Reply {
    if (health === 'absent' || request.method !== 'GET') return lost()
    if (!/^(?:Basic|Standard|Advanced)$/i.test(request.query.get('ExecutionMode') ?? ''))
      return json(400, bodies.badEnum)
    if (health === 'healthy') {
      return json(
        200,
        request.query.get('IncludeServerStateInformation') === 'true' ? bodies.withState : bodies.healthy,
      )
    }
    return json(request.query.get('SuppressErrorCodes') === 'true' ? 200 : 503, bodies.failing)
  }

  function reply(request: ReplayRequest): Reply {
    const { method, path, headers } = request
    if (how.requiresLength && method === 'POST' && headers['content-length'] === undefined) {
      return { status: 411, text: '<h1>Length Required</h1>', type: 'text/html; charset=utf-8' }
    }
    if (options.refuses === 'with a login page') {
      const location = `/login?redirect=${encodeURIComponent(`http://${headers.host}${path}`)}`
      return { status: 302, text: '', type: '', headers: { location } }
    }
    if (!/application\/json/.test(headers.accept ?? '')) return { status: 200, text: page, type: 'text/html' }
    const body: Dto = /^\s*\{/.test(request.body) ? (JSON.parse(request.body) as Dto) : {}
    const user = alive.get(presented(request))
    const route = path.toLowerCase()
    const signs = /^\/auth(?:\/|$)/.test(route)
    if (route === '/healthcheck') return healthOf(request)
    const leaves = (route === '/auth/logout' && method !== 'DELETE') || (how.deletes && method === 'DELETE' && signs)
    if (leaves) {
      // A session ends; of JWTs the server keeps no list.
      if (sessionsOnly) alive.delete(presented(request))
      return json(200, succeeded)
    }
    if (route === '/auth' && method === 'GET') {
      if (user === undefined) return fault(401, ['Unauthorized', 'Not Authenticated'])
      const { UserName, Permissions, ...asRecorded } = factsOf(user)
      return json(200, sessionsOnly ? { UserName, ...asRecorded, Permissions } : asRecorded)
    }
    if (route === '/auth/credentials' && method === 'POST') return signIn(body)
    if (/^\/auth\/\w+$/.test(route) && method === 'POST') return json(404, bodies.unknownProvider)
    if (route === '/access-token') return renew(body)
    if (route === '/assignroles' && method === 'POST') return change(request, user, body, true)
    if (route === '/unassignroles' && method === 'POST') return change(request, user, body, false)
    return lost()
  }

  const server = createServer((incoming, response) => {
    void readAll(incoming).then((body) => {
      const url = new URL(incoming.url ?? '/', 'http://replay')
      const request: ReplayRequest = {
        method: incoming.method ?? '',
        path: url.pathname,
        query: url.searchParams,
        headers: incoming.headers,
        body,
      }
      requests.push(request)
      const answer = reply(request)
      replies.push(answer.text)
      send(response, answer, generation, how)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: requests,
    replies: replies,
    alive: () => [...alive.keys()],
    expire: () => alive.clear(),
    renewals: () => renewals,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const page = '<!DOCTYPE html>\n<html><head><title>Snapshot</title></head><body>generated by ServiceStack</body></html>'
const onlyPassword =
  '{"ResponseStatus":{"ErrorCode":"ValidationException","Message":"Validation failed: \\n -- Password: \'Password\' must not be empty.","Errors":[{"ErrorCode":"NotEmpty","FieldName":"Password","Message":"\'Password\' must not be empty.","Meta":{"PropertyName":"Password"}}]}}'

/** Request names in any letter case. */
function fieldsOf(body: Dto): Dto {
  const names = ['UserName', 'Password', 'RememberMe', 'Roles', 'RefreshToken']
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      names.find((existing) => existing.toLowerCase() === name.toLowerCase()) ?? name,
      value,
    ]),
  )
}

/** The `Date` of the recording for an answer with the dates of a run: together they show that no cache answered. */
function sentAfter(text: string): { readonly date?: string } {
  const [, ended] = /EndDateTime":"(?:\\?\/Date\()?([^"()]+)/i.exec(text) ?? []
  if (ended === undefined) return {}
  const ms = Number.parseInt(ended, 10) > 9_999 ? Number.parseInt(ended, 10) : Date.parse(ended)
  return { date: new Date(ms + 1_000).toUTCString() }
}

/** Chunked, with the reason phrase and the cookies of that generation. */
function send(
  response: ServerResponse,
  { status, text, type, headers = {} }: Reply,
  generation: Generation,
  how: Traits,
): void {
  const { 'set-cookie': cookies = [], ...others } = headers
  const forAll = how.cookiesForAll
    ? [
        'ss-id=AnonymousVisitor0001; path=/; HttpOnly',
        'ss-pid=dEf; path=/; expires=Sat, 20 Nov 2046 10:00:00 GMT; HttpOnly',
      ]
    : []
  const [, code] = /"[eE]rrorCode":"([^"]+)"/.exec(text) ?? []
  response.statusMessage = (status >= 400 && generation === '5.8' && code) || ''
  response.writeHead(status, {
    vary: 'Accept',
    ...sentAfter(text),
    'x-powered-by': `ServiceStack/${generation}0`,
    ...(type === '' ? {} : { 'content-type': type }),
    ...(text === '404' || text === '' ? { 'content-length': text.length } : {}),
    'set-cookie': [...forAll, ...[cookies].flat()] as string[],
    ...(others as Record<string, string>),
  })
  const half = Math.ceil(text.length / 2)
  if (text.length > 3) response.write(text.slice(0, half))
  response.end(text.length > 3 ? text.slice(half) : text)
}

async function readAll(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
