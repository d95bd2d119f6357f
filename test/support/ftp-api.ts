import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { type HttpPeer, httpPeer } from './http-peer.ts'

export type FtpApi = HttpPeer & {
  /** Name to password of the accounts that the API has made and not removed. */
  readonly accounts: ReadonlyMap<string, string>
  /** `METHOD /path body` of every request, in the order of their coming. */
  readonly told: () => readonly string[]
}
export type Said = {
  readonly status: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}
/** What it says in place of its ordinary answer; undefined: that. `silence`: nothing, ever. */
export type Instead = (request: string) => Said | 'silence' | undefined

/** The password that svc's account signs in with. */
export const ftpApiPassword = 'orchard-and-lantern-7'

/** A small API of our own that makes and removes FTP accounts, behind a sign-in that gives a token and a cookie. */
export async function startFtpApi(
  instead: Instead = () => undefined,
  tls?: { readonly key: string; readonly cert: string },
): Promise<FtpApi> {
  const accounts = new Map<string, string>()
  const ids = new Map<string, string>()
  const told: string[] = []
  const token = 'api-session-0123456789'
  const isOurs = ({ headers }: IncomingMessage): boolean =>
    headers.authorization === `Bearer ${token}` && headers.cookie === 'session=crumb-5566'
  const ordinary = (request: IncomingMessage, heard: string): Said => {
    const { method, url = '' } = request
    const given = (heard.startsWith('{') ? JSON.parse(heard) : {}) as Readonly<Record<string, string>>
    if (method === 'POST' && url === '/v1/sign-in') {
      if (given.user !== 'monitor' || given.password !== ftpApiPassword) return { status: 401, body: { error: 'no' } }
      return { status: 200, body: { token }, headers: { 'Set-Cookie': 'session=crumb-5566; Path=/v1; HttpOnly' } }
    }
    if (!isOurs(request)) return { status: 401 }
    if (method === 'POST' && url === '/v1/accounts') {
      const id = `a-${ids.size + 1001}`
      ids.set(id, given.name ?? '')
      accounts.set(given.name ?? '', given.password ?? '')
      return { status: 201, body: { id, name: given.name } }
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
    void text(request).then((heard) => {
      told.push(`${request.method} ${request.url} ${heard}`.trimEnd())
      // Before the answer: what is said badly may have been done all the same.
      const usual = ordinary(request, heard)
      const said = instead(`${request.method} ${request.url}`) ?? usual
      if (said === 'silence') return
      const body = typeof said.body === 'string' ? said.body : JSON.stringify(said.body ?? '')
      response.writeHead(said.status, { 'Content-Type': 'application/json', ...said.headers })
      response.end(said.status === 204 ? undefined : body)
    })
  }, tls)
  return { ...server, accounts, told: () => told }
}
