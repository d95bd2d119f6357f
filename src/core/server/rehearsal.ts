import type { Socket } from 'node:net'
import { Fault } from '../base/errors.ts'
import { markBody, markText, rehearsalHeader } from '../protocol/index.ts'
import type { HttpAnswer } from './answer.ts'
import { orCancelled, type RequestContext, type ServerContext, type ServerRehearsal } from './context.ts'
import { escapeControls } from './log.ts'
import { publicPath } from './routes.ts'

/** Characters of a path and of a User-Agent that the log of a rehearsal shows. */
const [maxPath, maxAgent] = [200, 80]

/** Notes who asks. True where the script resets the connection: nothing is to be answered then. */
export function recordRequest(
  server: ServerContext,
  rehearsal: ServerRehearsal,
  { request, caller }: RequestContext,
): boolean {
  const { method = '', url = '', headers, socket } = request
  rehearsal.noteRequest({
    address: caller.address,
    agent: escapeControls((headers['user-agent'] ?? '').slice(0, maxAgent)),
    method,
    path: escapeControls(publicPath(url.split('?', 1)[0] ?? '').slice(0, maxPath)),
  })
  if (rehearsal.fault() !== 'reset') return false
  server.silenced.add(socket)
  resetConnection(server, socket)
  return true
}

/** Over TLS, the socket below is reset. */
function resetConnection({ connections }: ServerContext, socket: Socket): void {
  const { remoteAddress, remotePort } = socket
  for (const transport of connections.transports) {
    if (transport.remoteAddress === remoteAddress && transport.remotePort === remotePort) transport.resetAndDestroy()
  }
  socket.destroy()
}

/** Throws what the script has every request get, and does not resolve while the script says that the server hangs. */
export async function asScripted(rehearsal: ServerRehearsal, context: RequestContext): Promise<void> {
  const fault = rehearsal.fault()
  if (fault === 'over') throw new Fault('Unavailable', 'drill over')
  if (fault === '503') throw new Fault('Unavailable', 'the script of this rehearsal answers 503')
  if (fault === 'hang') await orCancelled(context, new Promise<never>(() => {}))
}

/** The answer of a probe: a balancer or a service manager must not take a rehearsal for a server that checks something. */
export const notForProduction = (): Fault => new Fault('Unavailable', 'this server rehearses, and checks nothing')

type Rehearsing = Pick<ServerContext, 'rehearsal'>

/** The headers that every answer of a rehearsal has, even one to a request that could not be parsed. A flat list. */
export const rehearsalHeaders = ({ rehearsal }: Rehearsing): readonly string[] =>
  rehearsal === undefined ? [] : rehearsalHeader

/** The fault as this server reports it. */
export const markedFault = ({ rehearsal }: Rehearsing, fault: Fault): Fault =>
  rehearsal === undefined ? fault : new Fault(fault.fault, markText(fault.message), fault.details)

/** The answer as this server sends it. */
export const markedAnswer = ({ rehearsal }: Rehearsing, answer: HttpAnswer): HttpAnswer =>
  rehearsal === undefined || answer.body === undefined
    ? answer
    : { ...answer, body: markBody(answer.contentType ?? '', String(answer.body)) }
