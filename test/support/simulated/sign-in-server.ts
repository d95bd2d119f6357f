import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * How servers differ: `old` answers with tokens that are renewed by one fixed refresh token (as recorded of 5.8),
 * `newer` puts them into cookies, `session` gives no tokens at all, `rotating` is svc's own (A11, T4).
 */
export type Dialect = 'old' | 'newer' | 'session' | 'rotating'

type Answered = 'answered'

export type RecordedRequest = {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export type SignInServer = {
  readonly url: string
  readonly port: number
  readonly requests: RecordedRequest[]
  /** Exchanges of a refresh token for a new pair, and of a spent one after its 10 s. */
  readonly rotations: () => number
  readonly alarms: () => number
  /** Access tokens and sessions that are good now. */
  readonly alive: () => readonly string[]
  /** Every access token is refused from now on; refresh tokens stay good. */
  readonly expire: () => void
  /** Nothing that was given is good any more. */
  readonly forget: () => void
  readonly close: () => Promise<void>
}

export type ServerOptions = {
  readonly dialect: Dialect
  /** Called before a refresh is answered. */
  readonly onRefresh?: (request: IncomingMessage) => Promise<void>
  /** A hostile server repeats its input. */
  readonly echoes?: boolean
}

export const user = 'alice'
export const password = 'correct horse 9!'

/** A real HTTP server that signs one user in, in the dialect of a server that exists. */
export async function signInServer(options: ServerOptions): Promise<SignInServer> {
  const { dialect } = options
  const requests: RecordedRequest[] = []
  const access = new Set<string>()
  const refresh = new Set<string>()
  const spent = new Map<string, { at: string; rt: string; when: number }>()
  let number = 0
  let rotations = 0
  let alarms = 0
  const make = (kind: string): string => {
    number += 1
    return `${kind}${number}-${'x'.repeat(40)}`
  }
  const pair = () => {
    const made = { at: make('AT'), rt: make('RT') }
    access.add(made.at)
    refresh.add(made.rt)
    return made
  }

  const answer = (
    response: ServerResponse,
    status: number,
    body: unknown,
    cookies: readonly string[] = [],
  ): Answered => {
    const text = JSON.stringify(body)
    response.writeHead(status, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(text),
      'set-cookie': ['ss-opt=temp;path=/;HttpOnly', ...cookies],
    })
    response.end(text)
    return 'answered'
  }
  const fault = (response: ServerResponse, status: number, code: string, message: string): Answered =>
    answer(response, status, { ResponseStatus: { ErrorCode: code, Message: message, Errors: [] } })

  const presented = ({ headers }: IncomingMessage): string | undefined => {
    const [, bearer] = /^Bearer (.+)$/.exec(headers.authorization ?? '') ?? []
    const session = headers['x-ss-opt'] === 'perm' ? headers['x-ss-pid'] : headers['x-ss-id']
    return [bearer, String(session ?? '')].find((one) => one !== undefined && access.has(one))
  }
  const facts = { UserId: '1', UserName: user, DisplayName: 'Alice', Roles: ['Admin'], Permissions: [] }

  function signIn(body: Record<string, unknown>, response: ServerResponse): Answered {
    const good = body['UserName'] === user && body['Password'] === password
    const echo = options.echoes ? ` ${String(body['Password'])} ${String(body['Password']).toUpperCase()}` : ''
    if (!good) return fault(response, 401, 'Unauthorized', `Invalid Username or Password${echo}`)
    const SessionId = make('SID')
    if (dialect === 'session') {
      access.add(SessionId)
      return answer(response, 200, { ...facts, SessionId })
    }
    const { at, rt } = pair()
    if (dialect === 'newer') {
      const cookies = [
        `ss-tok=${at}; path=/; HttpOnly`,
        `ss-reftok=${rt}; path=/; expires=Sat, 20 Nov 2046 10:00:00 GMT`,
      ]
      return answer(response, 200, { userId: '1', sessionId: SessionId, userName: user, roles: ['Admin'] }, cookies)
    }
    return answer(response, 200, { ...facts, SessionId, BearerToken: at, RefreshToken: rt })
  }

  function renew(body: Record<string, unknown>, response: ServerResponse): Answered {
    const refreshToken = String(body['RefreshToken'] ?? body['refreshToken'] ?? '')
    const former = spent.get(refreshToken)
    if (former && Date.now() - former.when < 10_000) {
      return answer(response, 200, { accessToken: former.at, refreshToken: former.rt })
    }
    if (former) alarms += 1
    if (!refresh.has(refreshToken)) return fault(response, 401, 'TokenException', 'Token has expired')
    rotations += 1
    const made = pair()
    if (dialect === 'rotating') {
      refresh.delete(refreshToken)
      spent.set(refreshToken, { ...made, when: Date.now() })
      return answer(response, 200, { accessToken: made.at, refreshToken: made.rt })
    }
    refresh.delete(made.rt)
    if (dialect === 'newer') return answer(response, 200, {}, [`ss-tok=${made.at}; path=/; HttpOnly`])
    return answer(response, 200, { AccessToken: made.at })
  }

  const server = createServer(async (request, response): Promise<Answered> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const path = (request.url ?? '').replace(/\?.*/, '')
    requests.push({ method: request.method ?? '', path, headers: request.headers, body: text })
    const body = text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
    const token = presented(request)
    if (path === '/access-token') {
      await options.onRefresh?.(request)
      return renew(body, response)
    }
    if (path === '/auth/logout') {
      if (token !== undefined) access.delete(token)
      return answer(response, 200, dialect === 'newer' ? {} : { ResponseStatus: {} })
    }
    if (path.startsWith('/auth/') && request.method === 'POST') return signIn(body, response)
    const refused = options.echoes ? `Not Authenticated ${request.headers.authorization ?? ''}` : 'Not Authenticated'
    if (path === '/auth') {
      return token === undefined ? fault(response, 401, 'Unauthorized', refused) : answer(response, 200, facts)
    }
    if (token === undefined) return fault(response, 401, 'Unauthorized', refused)
    if (path === '/assignroles') return answer(response, 200, { AllRoles: ['Admin'], AllPermissions: [] })
    return answer(response, 200, {
      Status: 'Success',
      StatusMessage: 'fine',
      FailedMonitorCount: 0,
      MonitorSummaries: [{ MonitorName: 'Sql', Status: 'Success' }],
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests: requests,
    rotations: () => rotations,
    alarms: () => alarms,
    alive: () => [...access],
    expire: () => access.clear(),
    forget: () => {
      access.clear()
      refresh.clear()
    },
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
