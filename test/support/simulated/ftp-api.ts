import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { type HttpPeer, httpPeer } from './http-peer.ts'

export type FtpApi = HttpPeer & {
  /** Name to password of the accounts that the API has made and not removed. */
  readonly accounts: ReadonlyMap<string, string>
  /** `METHOD /path body` of every request, in the order of their coming. */
  readonly requestTexts: () => readonly string[]
}
export type Reply = {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}
/** The reply in place of its ordinary one; undefined: the ordinary one. `silence`: nothing, ever. */
export type Instead = (request: string) => Reply | 'silence' | undefined

/** The password that svc's account signs in with. */
export const ftpApiPassword = 'orchard-and-lantern-7'

/** A small API of our own that makes and removes FTP accounts, behind a sign-in that gives a token and a cookie. */
export async function startFtpApi(
  instead: Instead = () => undefined,
  tls?: { readonly key: string; readonly cert: string },
): Promise<FtpApi> {
  const accounts = new Map<string, string>()
  const ids = new Map<string, string>()
  const requestTexts: string[] = []
  const token = 'api-session-0123456789'
  const isOurs = ({ headers }: IncomingMessage): boolean =>
    headers.authorization === `Bearer ${token}` && headers.cookie === 'session=crumb-5566'
  const ordinary = (request: IncomingMessage, body: string): Reply => {
    const { method, url = '' } = request
    const account = (body.startsWith('{') ? JSON.parse(body) : {}) as Readonly<Record<string, string>>
    if (method === 'POST' && url === '/v1/sign-in') {
      if (account.user !== 'monitor' || account.password !== ftpApiPassword)
        return { status: 401, body: { error: 'no' } }
      return { status: 200, body: { token }, headers: { 'Set-Cookie': 'session=crumb-5566; Path=/v1; HttpOnly' } }
    }
    if (!isOurs(request)) return { status: 401 }
    if (method === 'POST' && url === '/v1/accounts') {
      const id = `a-${ids.size + 1001}`
      ids.set(id, account.name ?? '')
      accounts.set(account.name ?? '', account.password ?? '')
      return { status: 201, body: { id, name: account.name } }
    }
    if (method === 'POST' && url === '/v1/sign-out') return { status: 204 }
    const id = /^\/v1\/accounts\/([\w-]+)$/.exec(url)?.[1] ?? ''
    const name = ids.get(id)
    if (name === undefined) return { status: 404 }
    if (method === 'GET') return { status: 200, body: { id, name } }
    if (method !== 'DELETE') return { status: 405 }
    ids.delete(id)
    accounts.delete(name)
    return { status: 204 }
  }
  const server = await httpPeer((request, response) => {
    void text(request).then((input) => {
      requestTexts.push(`${request.method} ${request.url} ${input}`.trimEnd())
      // Before the answer: a request with a bad answer may have been executed nevertheless.
      const usual = ordinary(request, input)
      const reply = instead(`${request.method} ${request.url}`) ?? usual
      if (reply === 'silence') return
      const body = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body ?? '')
      response.writeHead(reply.status, { 'Content-Type': 'application/json', ...reply.headers })
      response.end(reply.status === 204 ? undefined : body)
    })
  }, tls)
  return { ...server, accounts, requestTexts: () => requestTexts }
}
