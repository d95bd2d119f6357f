import { createServer as createHttp, type Server, type ServerOptions } from 'node:http'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo } from 'node:net'
import { Fault } from '../errors.ts'
import { isLoopback, isLoopbackHost } from '../loopback.ts'
import { preload } from '../preload.ts'
import { preloadReports } from '../reports/index.ts'
import type { Runtime, ServeOptions, Service } from '../service.ts'
import { preloadFormats } from '../wire/index.ts'
import { admit, trackConnections } from './connections.ts'
import { latestOn, type ServerContext } from './context.ts'
import { DescribedInterface } from './documents.ts'
import { handle, neverAllowed } from './handle.ts'
import { HealthJson } from './health-json.ts'
import { callerOf, hostCheck, plainAddress, trustedProxies } from './hosts.ts'
import { type ServerLimits, serverLimits } from './limits.ts'
import { type Log, stackOf } from './log.ts'
import { Metrics } from './metrics.ts'
import { answerRaw, refuseUnparsed } from './parser-faults.ts'
import { router, targetReader } from './routes.ts'
import { drain } from './stop.ts'

export type StartOptions = {
  readonly service: Service
  readonly runtime: Runtime
  readonly options: ServeOptions
  readonly host: string
  /** 0 chooses a free port. */
  readonly port: number
  /** PEM texts. */
  readonly tls?: { readonly cert: string | Buffer; readonly key: string | Buffer } | undefined
  readonly log: Log
  /** The number of log lines that could not be written since the start. When absent, /metrics omits it. */
  readonly droppedLogLines?: (() => number) | undefined
  /** Overrides of the default limits. */
  readonly limits?: Partial<ServerLimits> | undefined
}
export type RunningServer = {
  /** Uses an address that works on this machine, even when the server listens on all addresses. */
  readonly url: string
  readonly host: string
  readonly port: number
  /** Answers the requests in progress and those still unread, then closes (S9). Safe to call twice. */
  readonly stop: () => Promise<void>
}

/**
 * Serves a Service over HTTP, after loading every module that writes answers. Throws a Local fault when a module
 * cannot be loaded, or the address or the certificate cannot be used. The caller keeps the Service and the Runtime:
 * stopping closes neither.
 */
export async function startServer(start: StartOptions): Promise<RunningServer> {
  const limits = { ...serverLimits, ...start.limits }
  const isTrusted = trustedProxies(start.options.trustProxy)
  const server = withCertificate(() => create(limits, start.tls))
  const serverContext: ServerContext = {
    service: start.service,
    runtime: start.runtime,
    options: start.options,
    limits,
    log: start.log,
    secure: start.tls !== undefined,
    readTarget: targetReader(router()),
    checkHost: withCertificate(() =>
      hostCheck({ bound: start.host, allowedHosts: start.options.allowedHosts, certificate: start.tls?.cert }),
    ),
    isTrusted,
    callerOf: callerOf(isTrusted),
    origins: new Set(start.options.origins),
    metrics: new Metrics(start.droppedLogLines),
    healthJson: new HealthJson(),
    described: new DescribedInterface(start.options),
    open: new Set(),
    connections: trackConnections(server, start.tls !== undefined),
    openOn: new WeakMap(),
    silenced: new WeakSet(),
    draining: false,
    hold: undefined,
  }
  listenTo(server, serverContext)
  await preload(preloadFormats, preloadReports)
  const { address, family, port } = await listening(server, start.host, start.port)
  // Without a listener, a connection that the system cannot accept would end the process.
  server.on('error', (error) =>
    serverContext.log({ level: 'error', msg: 'a connection was not accepted', stack: stackOf(error) }),
  )
  let stopped: Promise<void> | undefined
  return {
    url: `${serverContext.secure ? 'https' : 'http'}://${reachable(address, family)}:${port}`,
    host: address,
    port,
    stop: () => {
      stopped ??= drain(server, serverContext)
      return stopped
    },
  }
}

function create(limits: ServerLimits, tls: StartOptions['tls']): Server {
  const options: ServerOptions = {
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    connectionsCheckingInterval: limits.checkEveryMs,
    keepAliveTimeout: limits.keepAliveMs,
    // The gate refuses a missing Host like any other error, with a body; Node's own answer has none.
    requireHostHeader: false,
  }
  const server = tls
    ? createHttps({ ...options, ...tls, minVersion: 'TLSv1.2', handshakeTimeout: limits.headersMs })
    : createHttp(options)
  // One above the limit, to detect an excess: Node silently drops further headers.
  server.maxHeadersCount = limits.headerCount + 1
  server.maxConnections = limits.connections
  server.timeout = limits.silenceMs
  // A script that pipes a request into nc closes its side before the answer arrives.
  Object.assign(server, { httpAllowHalfOpen: true })
  return server
}

function listenTo(server: Server, serverContext: ServerContext): void {
  server.on('request', (request, response) => handle(serverContext, request, response, false))
  server.on('checkContinue', (request, response) => handle(serverContext, request, response, true))
  // Without this listener Node would answer an unknown expectation itself. Here the gate refuses it.
  server.on('checkExpectation', (request, response) => handle(serverContext, request, response, false))
  server.on('connect', (_request, socket) => {
    const refuse = (): void => answerRaw(serverContext, socket, neverAllowed('CONNECT'), 'CONNECT')
    // Node no longer handles this socket, and an unhandled error would end the process.
    socket.on('error', () => {})
    // Answers must keep the order of the requests.
    const before = latestOn(serverContext, socket)
    if (before) before.response.once('close', refuse)
    else refuse()
  })
  server.on('clientError', (error, socket) => refuseUnparsed(serverContext, error, socket))
  server.on('connection', (socket) => {
    // A peer that closes its side may still be reading, or it may be gone. A timer decides.
    socket.once('end', () => setTimeout(() => socket.destroy(), serverContext.limits.lingerMs))
  })
  server.on('drop', () => serverContext.metrics.refusedConnection())
  server.on(
    'connection',
    admit({
      most: serverContext.limits.connectionsPerAddress,
      addressOf: (socket) => plainAddress(socket.remoteAddress ?? ''),
      exempt: (address) => isLoopback(address) || serverContext.isTrusted(address),
      refused: () => serverContext.metrics.refusedConnection(),
    }),
  )
}

function listening(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => reject(unusable(error, host, port))
    server.once('error', failed)
    server.listen({ host, port }, () => {
      server.off('error', failed)
      const bound = server.address() as AddressInfo
      if (!isLoopbackHost(host) || isLoopback(bound.address)) return resolve(bound)
      // No connection has been accepted yet. The host name was the reason not to require TLS and an Admin.
      server.close()
      reject(nameLeadsElsewhere(host, bound.address))
    })
  })
}

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there',
  EACCES: 'this account may not listen there',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'the name is not known here',
  EAI_AGAIN: 'the name cannot be looked up now',
}

function unusable(error: NodeJS.ErrnoException, host: string, port: number): Fault {
  const where = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
  const hint =
    error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND' ? 'Choose an address: --host' : 'Choose a port: --port'
  return new Fault(
    'Local',
    `Cannot listen on ${where}: ${reasons[error.code ?? ''] ?? error.code ?? 'unknown reason'}`,
    {
      hints: [hint],
      cause: error,
    },
  )
}

/** A name that should be loopback resolves to an address that other machines reach. */
const nameLeadsElsewhere = (host: string, address: string): Fault =>
  new Fault('Local', `Cannot listen on ${host}: ${host} is ${address} here, which is not loopback`, {
    hints: [`If that is meant, name the address: --host ${address}`],
  })

/** Browsers cannot open a wildcard address. It includes the loopback address. */
function reachable(address: string, family: string): string {
  if (address === '0.0.0.0') return '127.0.0.1'
  if (address === '::') return '[::1]'
  return family === 'IPv6' ? `[${address}]` : address
}

function withCertificate<T>(make: () => T): T {
  try {
    return make()
  } catch (error) {
    if (error instanceof Fault) throw error
    // OpenSSL's message names the problem and never the key.
    const reason = error instanceof Error ? error.message : 'unreadable'
    throw new Fault('Local', `The certificate and its key cannot be used: ${reason}`, {
      hints: ['Both are PEM files, and the key belongs to the first certificate: --tls-cert, --tls-key'],
    })
  }
}
