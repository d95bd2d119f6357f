import { isLoopbackHost } from '../../base/loopback.ts'
import { hostPort } from '../../base/net/connect.ts'
import { sanitize } from '../../base/net/text.ts'
import type { Recognition, RecognizedServer } from './recognition.ts'

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
