import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** One server of this machine, and how it is checked. */
export type TrialServer = {
  readonly type: 'Sql' | 'App' | 'Ftp' | 'Batch' | 'Identity'
  readonly name: string
  readonly kind: 'http' | 'tcp' | 'tls'
  readonly port: number
  /** The rest of the line in svc.yaml. */
  readonly more?: string
}

export type TenServers = {
  readonly servers: readonly TrialServer[]
  /** Ends the server that others depend on, and makes one answer errors. */
  readonly breakSome: () => Promise<void>
  readonly close: () => Promise<void>
}

/** Ten servers on loopback. After `breakSome`, two fail by themselves, two because of one of these, and one is slow. */
export async function startTenServers(): Promise<TenServers> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-ten-'))
  const certificate = selfSigned(folder)
  const all: Server[] = []
  let isBroken = false
  const listen = async (server: Server): Promise<number> => {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    all.push(server)
    return (server.address() as AddressInfo).port
  }
  const web = async (answer: RequestListener): Promise<number> => await listen(createHttpServer(answer))
  const json =
    (body: object): RequestListener =>
    (_, response) =>
      void response.setHeader('Content-Type', 'application/json').end(JSON.stringify(body))
  const reports = greeting('')
  const reportsPort = await listen(reports.server)
  const needsReports: RequestListener = (_, response) => {
    response.statusCode = isBroken ? 503 : 200
    response.end(isBroken ? 'no connection to the database' : 'ready')
  }
  const dependent = 'dependsOn: Sql/tcp reports'
  const secured = createHttpsServer(certificate, (_, response) => void response.end('ready'))
  const servers: readonly TrialServer[] = [
    { type: 'Sql', name: 'orders', kind: 'tcp', port: await listen(greeting('').server) },
    { type: 'Sql', name: 'reports', kind: 'tcp', port: reportsPort },
    { type: 'App', name: 'shop', kind: 'http', port: await web(json({ state: 'ready', queue: 3 })) },
    { type: 'App', name: 'search', kind: 'http', port: await web(json({ state: 'ready' })) },
    { type: 'App', name: 'dashboard', kind: 'http', port: await web(needsReports), more: dependent },
    {
      type: 'App',
      name: 'checkout',
      kind: 'http',
      port: await web((_, response) => {
        response.statusCode = isBroken ? 500 : 200
        response.end(isBroken ? 'payment gateway refused the certificate' : 'ready')
      }),
    },
    {
      type: 'Batch',
      name: 'worker',
      kind: 'http',
      port: await web((_, response) => void setTimeout(() => response.end('ready'), isBroken ? 700 : 5)),
      more: 'latency: {warn: 500ms, limit: 2s}',
    },
    { type: 'Batch', name: 'nightly', kind: 'http', port: await web(needsReports), more: dependent },
    {
      type: 'Identity',
      name: 'login',
      kind: 'tls',
      port: await listen(secured),
      more: `caFile: ${join(folder, 'cert')}`,
    },
    { type: 'Ftp', name: 'files', kind: 'tcp', port: await listen(greeting('220 files\r\n').server) },
  ]
  return {
    servers,
    breakSome: async () => {
      isBroken = true
      await reports.close()
    },
    close: async () => {
      for (const server of all) {
        server.closeAllConnections?.()
        server.close()
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** A listener that greets each connection and keeps it open until it closes. */
function greeting(text: string) {
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => {}).on('close', () => open.delete(socket))
    if (text !== '') socket.write(text)
  })
  const close = async (): Promise<void> => {
    for (const socket of open) socket.destroy()
    server.close()
    await once(server, 'close')
  }
  return { server: server as unknown as Server, close }
}

function selfSigned(folder: string): { readonly key: string; readonly cert: string } {
  const [key, cert] = [join(folder, 'key'), join(folder, 'cert')]
  const days = ['-days', '9', '-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1']
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
  execFileSync('openssl', ['req', '-x509', '-nodes', ...curve, '-keyout', key, '-out', cert, ...days], {
    stdio: 'ignore',
  })
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
}

const address = ({ kind, port }: TrialServer): string =>
  kind === 'http' ? `url: http://127.0.0.1:${port}/health` : `host: 127.0.0.1, port: ${port}`

/** The svc.yaml that checks them. */
export function yamlOf(servers: readonly TrialServer[], serve: string): string {
  const types = [...new Set(servers.map(({ type }) => type))]
  const lines = types.map((type) => {
    const own = servers.filter((one) => one.type === type)
    return `  ${type}:\n    monitors:\n${own
      .map(
        (one) =>
          `      - {kind: ${one.kind}, name: ${one.name}, ${[address(one), one.more].filter(Boolean).join(', ')}, confirm: 5s}\n`,
      )
      .join('')}`
  })
  return `serve: ${serve}\ntypes:\n${lines.join('')}`
}
