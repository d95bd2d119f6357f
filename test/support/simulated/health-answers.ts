import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const answer = (Status: 'Success' | 'Failure', StatusMessage: string): string =>
  JSON.stringify({
    Status,
    StatusMessage,
    CorrelationId: '7f3c2a9e-41d0-4c1b-9a57-0d6f3f1f2b11',
    FailedMonitorCount: Status === 'Failure' ? 1 : 0,
    MonitorSummaries: [
      {
        MonitorName: 'http shop',
        Status,
        Results: [{ MonitoringName: 'status', Status, StatusMessage, ErrorMessages: [] }],
        ErrorMessages: [],
      },
    ],
  })

const refusal = (ErrorCode: string, Message: string): string =>
  JSON.stringify({ ResponseStatus: { ErrorCode, Message } })

/** The answer of each path: its HTTP status and its body. */
const answers = {
  healthy: [200, answer('Success', '200 in 43 ms')],
  warning: [200, answer('Success', 'warning: certificate expires in 12 d')],
  unhealthy: [503, answer('Failure', '502 instead of 200')],
  'sign-in': [401, refusal('Unauthorized', 'Not Authenticated')],
  forbidden: [403, refusal('Forbidden', 'Invalid Role')],
  'server-error': [500, refusal('InternalServerError', 'the server failed')],
  unreadable: [200, '<html>'],
  rejected: [400, refusal('BadRequest', 'ServerType is unknown')],
} as const

export type HealthServer = {
  readonly url: (path: keyof typeof answers | 'silent' | 'mixed') => string
  /** Resolves when the next request to `silent` has arrived. */
  readonly request: () => Promise<void>
  readonly close: () => void
}

/**
 * A simulated server of the interface: the path below its URL chooses what it answers. `silent` never answers, `mixed`
 * is healthy for App and asks everybody to sign in for the rest.
 */
export async function healthServer(): Promise<HealthServer> {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://server')
    const [, path = ''] = pathname.split('/')
    if (path === 'silent') return void server.emit('silent')
    const mixed = searchParams.get('ServerType') === 'App' ? 'healthy' : 'sign-in'
    const name = path === 'mixed' ? mixed : path
    const [status, body] = answers[name as keyof typeof answers] ?? [404, '']
    response.writeHead(status, { 'content-type': 'application/json' }).end(body)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: (path) => `http://127.0.0.1:${port}/${path}`,
    request: async () => void (await once(server, 'silent')),
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
