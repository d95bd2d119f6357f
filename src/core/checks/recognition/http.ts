import { isLoopbackHost } from '../../base/loopback.ts'
import { hostPort } from '../../base/net/connect.ts'
import { sanitize } from '../../base/net/text.ts'
import { namedBy, type Recognition, type RecognizedServer } from './recognition.ts'

/** How an HTTP server is recognized. The kinds of products with an HTTP interface use it, too. */
export const httpServer = {
  name: 'http',
  greeting: Buffer.from('HEAD / HTTP/1.0\r\n\r\n'),
  underTls: true,
  is: (reply) => reply.toString('latin1', 0, 5) === 'HTTP/',
  isWhole: (reply) => reply.toString('latin1', 0, 5) !== 'HTTP/' || reply.includes('\r\n\r\n'),
  product: (reply) => {
    const [, server = ''] = /\r\nServer: *([\x20-\x7e]{1,60})/i.exec(reply.toString('latin1')) ?? []
    return /^[a-z][a-z0-9]{1,20}/i.exec(sanitize(server.trim(), 60))?.[0].toLowerCase()
  },
  // Apache and nginx answer plain HTTP on a TLS port too: with 400.
  expectsTls: (reply) => /^HTTP\/1\.[01] 400 /.test(reply.toString('latin1', 0, 20)),
  pool: namedBy(/\r\nServer: *([^\r\n]+)/i),
} as const satisfies Partial<Recognition>

/**
 * The URL of an HTTP server's page: its root, or the page to which it redirects from there within its own origin. The
 * query of a redirect is left out: it may contain anything.
 */
export function pageOf({ host, port, tls, reply }: RecognizedServer): { readonly root: string; readonly page: string } {
  const root = `${tls ? 'https' : 'http'}://${hostPort(host, port)}/`
  const [, location] =
    /^HTTP\/1\.[01] 30[12378] [\s\S]*?\r\nLocation: *([\x21-\x7e]{1,500})\r\n/i.exec(reply.toString('latin1')) ?? []
  const base = URL.parse(root)
  const goal = location === undefined || base === null ? null : URL.parse(location, root)
  if (base === null || goal === null || goal.protocol !== base.protocol) return { root, page: root }
  // Many servers name themselves localhost in a redirect.
  const isSame = goal.origin === base.origin || (isLoopbackHost(goal.hostname) && goal.port === base.port)
  return { root, page: isSame ? new URL(goal.pathname, root).href : root }
}

/** The pages by which servers whose root is no page report that they work: a 404 there is not a fault. */
const healthPages = [
  {
    product: 'etcd',
    path: 'health',
    answer: /^HTTP\/1\.[01] (?:200|503) [\s\S]*\r\n\r\n\{"health": ?"/,
    expects: { json: { '$.health': 'true' } },
  },
  { product: 'traefik', path: 'ping', answer: /^HTTP\/1\.[01] 200 [\s\S]*\r\n\r\nOK$/, expects: { contains: 'OK' } },
] as const

type HealthPage = { readonly product?: string; readonly url: string } & Readonly<Record<string, unknown>>

/** The page by which a server reports that it works, and what it answers, where the root does not answer itself. */
export async function healthPageOf(server: RecognizedServer): Promise<HealthPage | undefined> {
  if (/^HTTP\/1\.[01] 2/.test(server.reply.toString('latin1', 0, 10))) return undefined
  for (const { product, path, answer, expects } of healthPages) {
    const isThere = (reply: Buffer): boolean => answer.test(reply.toString('latin1'))
    const host = hostPort(server.host, server.port)
    const reply = await server.ask(Buffer.from(`GET /${path} HTTP/1.0\r\nHost: ${host}\r\n\r\n`), isThere)
    if (reply && isThere(reply)) return { product, url: `${pageOf(server).root}${path}`, ...expects }
  }
  return undefined
}

/**
 * The server by the name in its certificate, where that is a name of this machine: by its address, a server of many sites
 * shows another one.
 */
export async function byCertificateName(server: RecognizedServer): Promise<RecognizedServer> {
  const { tls, machine } = server
  if (tls?.name === undefined || !(await machine.isHere(tls.name))) return server
  const host = tls.name
  const reply = (await server.ask(Buffer.from(`HEAD / HTTP/1.0\r\nHost: ${host}\r\n\r\n`))) ?? server.reply
  return { ...server, host, reply, tls: { ...tls, trusted: tls.chainTrusted } }
}
