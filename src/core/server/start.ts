import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { createServer as createHttp, type Server, type ServerOptions } from 'node:http'
import { createServer as createHttps, Server as HttpsServer } from 'node:https'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { performance } from 'node:perf_hooks'
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises'
import { createSecureContext } from 'node:tls'
import { Fault } from '../base/errors.ts'
import { isFileOutage } from '../base/file-errors.ts'
import { isLoopback, isLoopbackHost } from '../base/loopback.ts'
import { preload } from '../base/preload.ts'
import { preloadReports } from '../checks/reports/index.ts'
import type { Runtime, ServeOptions, Service } from '../protocol/service/service.ts'
import { preloadFormats } from '../protocol/wire/index.ts'
import { admit, trackConnections } from './connections.ts'
import { KeptSeries, latestOn, type ServerContext, type ServerRehearsal } from './context.ts'
import { DescribedInterface } from './documents.ts'
import { handle, neverAllowed, stopping } from './handle.ts'
import { HealthJson } from './health-json.ts'
import {
  type CallerRules,
  callerOf,
  type HostCheck,
  hostCheck,
  peerCheck,
  plainAddress,
  trustedProxies,
} from './hosts.ts'
import { type ServerLimits, serverLimits } from './limits.ts'
import { answerOn, isOnLocalSocket, listenLocally } from './local-socket.ts'
import { type Log, logOnce, stackOf } from './log.ts'
import { limitLocal } from './loopback-limit.ts'
import { Metrics } from './metrics.ts'
import { accountRules, peerProcesses } from './peer-account.ts'
import { isProbe, ProbeConnections, peerOf } from './probes.ts'
import { router, targetReader } from './routes.ts'
import { answerRaw, refuseUnparsed } from './send.ts'
import { Pipelines } from './turns.ts'
import { WaitingAnswers } from './waiting.ts'

type Pair = { readonly cert: string | Buffer; readonly key: string | Buffer }

/** The meanings of OpenSSL's refusals of a certificate and its key. */
const meanings: readonly (readonly [RegExp, string])[] = [
  [/(?:key|modulus) too small/, 'the key is too short to be secure: an RSA key needs 2048 bits'],
  [/md too weak|digest too weak/, 'the certificate is signed with a digest that is too weak to be secure'],
  [/wrong curve|unsupported (?:elliptic )?curve|unknown group/, 'the key uses a curve that TLS does not support'],
]

/**
 * Why a server cannot use this certificate and key, in words, without any part of the key. `error` is what the server
 * threw.
 */
function certificateProblem({ cert, key }: Pair, error: unknown): string {
  const certificate = attempt(() => new X509Certificate(cert))
  if (!certificate) return `--tls-cert ${contentOf(cert)} no certificate in PEM format (-----BEGIN CERTIFICATE-----)`
  const parsed = privateKey(key)
  if (typeof parsed === 'string') return parsed
  if (!certificate.checkPrivateKey(parsed))
    return 'the key of --tls-key does not belong to the first certificate of --tls-cert'
  const text = error instanceof Error ? error.message : ''
  const [, meaning] = meanings.find(([pattern]) => pattern.test(text)) ?? []
  // OpenSSL's message names the problem and never the key. Its last part is the reason.
  return meaning ?? `TLS refuses them: ${text.split(':').at(-1)?.trim() || 'without a reason'}`
}

function privateKey(key: string | Buffer): KeyObject | string {
  if (/ENCRYPTED/.test(String(key)))
    return 'the key of --tls-key is encrypted, and svc has no passphrase for it: openssl pkey -in FILE -out KEY'
  return (
    attempt(() => createPrivateKey(key)) ??
    `--tls-key ${contentOf(key)} no private key in PEM format (-----BEGIN PRIVATE KEY-----)`
  )
}

const contentOf = (pem: string | Buffer): string => (String(pem).trim() === '' ? 'is empty:' : 'contains')

function attempt<T>(make: () => T): T | undefined {
  try {
    return make()
  } catch {
    return undefined
  }
}

/** How often a stopping server checks whether every request is answered. Milliseconds. */
const lookEveryMs = 50
/**
 * How many connections a stopping server accepts before it closes its listener in any case: more than the accept queue
 * contains, and more than callers open that were answered a moment ago. A count, since a busy machine takes seconds.
 */
const maxAccepted = 4_096

/**
 * Stops a server without losing a request that has reached this machine (S9). Resolves when every connection is
 * closed: within 10 s, or within 3 s after a drain delay that is longer than 7 s.
 *
 * 1. From now on, readiness and every new request get 503. The server still listens, because load balancers need a
 *    moment to notice.
 * 2. The listener closes as soon as the system's accept queue is empty, because closing it resets the connections that
 *    wait there. Answers are held back until then.
 * 3. The server reads and answers what the accepted connections still send, until every call in progress is answered
 *    and nothing more arrives for a moment: closing a connection with unread bytes would reset it.
 * 4. After 8 s it cancels the checks and calls in progress and answers them 503. What is still open a moment later is
 *    closed without an answer.
 */
export async function drain(server: Server, serverContext: ServerContext): Promise<void> {
  const { limits, connections, open } = serverContext
  const started = performance.now()
  const elapsed = (): number => performance.now() - started
  serverContext.draining = true

  // A long drain delay postpones the closing of connections, so that the last ones get their share of time too.
  const stretch = Math.max(0, limits.drainDelayMs + 2 * limits.quietMs - limits.cancelAfterMs)
  const graceEndsMs = limits.cancelAfterMs + stretch
  const closeAfterMs = limits.closeAfterMs + stretch
  const cancel = setTimeout(() => {
    for (const { cancel } of open) cancel(stopping())
    serverContext.runtime.cancelRuns?.()
  }, limits.cancelAfterMs)
  let isLate = false
  const close = setTimeout(() => {
    isLate = true
    closeAll(serverContext)
  }, closeAfterMs)

  const quiet = watchForQuiet(serverContext)
  try {
    await pause(limits.drainDelayMs)
    const answers = holdAnswers(serverContext)
    await emptyAcceptQueue(serverContext, () => isLate)
    const closed = Promise.all([stopListening(server), serverContext.localSocket?.close()])
    answers.release()
    while (connections.transports.size > 0) {
      await pause(lookEveryMs)
      const mayEnd = quiet.isQuiet() || elapsed() >= graceEndsMs
      if (open.size > 0 || !mayEnd) continue
      endConnections(server, serverContext)
      break
    }
    await closed
  } finally {
    quiet.stop()
    clearTimeout(cancel)
    clearTimeout(close)
    // Stops the timer with which Node looks for slow requests. Nothing else is left to close.
    server.close()
  }
}

/**
 * Holds answers back while the accept queue empties: an answered caller may reconnect at once, and enough such callers
 * would keep the queue from ever being empty.
 */
function holdAnswers(server: ServerContext): { readonly release: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  server.hold = promise
  return {
    release: () => {
      server.hold = undefined
      resolve()
    },
  }
}

/**
 * Resolves when the system's accept queue is empty. Every turn of the event loop accepts at least one waiting
 * connection, so a turn that accepts none means that none is left.
 */
async function emptyAcceptQueue({ connections }: ServerContext, isLate: () => boolean): Promise<void> {
  const most = connections.accepted() + maxAccepted
  let before: number
  do {
    before = connections.accepted()
    await turn()
  } while (connections.accepted() !== before && connections.accepted() < most && !isLate())
}

/**
 * Closes only the listener; resolves when the last connection has closed. `close` of an HTTP server would also destroy
 * connections that it considers idle: those whose next request is still unread, and those whose answer is not yet sent
 * completely.
 */
function stopListening(server: Server): Promise<void> {
  return new Promise((resolve) => NetServer.prototype.close.call(server, () => resolve()))
}

/**
 * Watches whether anything arrives on any connection. Counts polls, not milliseconds: each poll runs after the event
 * loop has read what had arrived, however long it was blocked.
 */
function watchForQuiet({ connections, limits }: ServerContext): {
  readonly isQuiet: () => boolean
  readonly stop: () => void
} {
  let received = 0
  let quietLooks = 0
  const look = async (): Promise<void> => {
    await turn()
    let total = connections.accepted()
    for (const socket of connections.transports) total += socket.bytesRead
    quietLooks = total === received ? quietLooks + 1 : 0
    received = total
  }
  const timer = setInterval(look, lookEveryMs)
  return {
    isQuiet: () => quietLooks * lookEveryMs >= limits.quietMs,
    stop: () => clearInterval(timer),
  }
}

/** Closes connections without a call in progress. A connection in the middle of a request gets a 503. */
function endConnections(server: Server, serverContext: ServerContext): void {
  const { transports, httpSockets } = serverContext.connections
  // Node knows which connections are between two requests.
  server.closeIdleConnections()
  const connected = [...httpSockets].filter((socket) => !socket.destroyed)
  const peers = new Set(connected.map(peerOf))
  for (const socket of connected) {
    // These have received their last answer and get a moment to read it.
    if (serverContext.silenced.has(socket)) continue
    if (socket.bytesRead === 0 || !socket.writable) {
      socket.destroy()
      continue
    }
    serverContext.silenced.add(socket)
    answerRaw(serverContext, socket, stopping(), 'other')
  }
  // Only stalled TLS handshakes are left.
  for (const socket of transports) if (!peers.has(peerOf(socket))) socket.destroy()
}

function closeAll({ connections: { httpSockets, transports } }: ServerContext): void {
  for (const socket of [...httpSockets, ...transports]) socket.destroy()
}

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
  /** Makes the server one that rehearses. */
  readonly rehearsal?: ServerRehearsal | undefined
  /** Called once, when the first request arrives through a proxy on this machine that nobody has declared. */
  readonly undeclaredProxy?: (() => void) | undefined
  /** Overrides of the default limits. */
  readonly limits?: Partial<ServerLimits> | undefined
}
export type RunningServer = {
  /** Uses an address that works on this machine, even when the server listens on all addresses. */
  readonly url: string
  /** The address for other machines. That of this machine, if the server listens on all addresses. */
  readonly peer: string
  readonly host: string
  readonly port: number
  /**
   * Checks another certificate and its key, as PEM texts. The function that it returns makes new connections use them.
   * Throws a Local fault if they cannot be used.
   */
  readonly certificate: (pair: Pair) => () => void
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
  const isTrusted = trustedProxies([...start.options.trustProxy, ...start.options.behindProxy])
  const callerRules = {
    isTrusted,
    behindProxy: start.options.behindProxy.length > 0,
    processOf: peerProcesses(await accountRules(start.options, start.log)),
    foundProxy: reportProxyOnce(start),
  }
  const isLocalOnly = isLoopbackHost(start.host) && start.options.behindProxy.length === 0
  const options = { ...start.options, jsonp: start.options.jsonp ?? isLocalOnly }
  const server = withCertificate(start.tls, () => create(limits, start.tls))
  const metrics = new Metrics(start.droppedLogLines)
  const waiting = new WaitingAnswers({ each: limits.waitingBytes, all: limits.waitingBytesOfAll }, () =>
    metrics.refusedConnection(),
  )
  const serverContext: ServerContext = {
    service: start.service,
    runtime: start.runtime,
    options,
    limits,
    log: start.log,
    secure: start.tls !== undefined,
    strictTransport: withCertificate(start.tls, () => strictTransport(start)),
    readTarget: targetReader(router()),
    checkHost: withCertificate(start.tls, () => hostsOf(start, options)),
    isTrusted,
    checkPeer: peerCheck(callerRules),
    callerOf: callerOf(callerRules),
    origins: new Set(options.origins),
    metrics,
    keptSeries: new KeptSeries(),
    healthJson: new HealthJson(),
    described: new DescribedInterface({ ...options, providers: start.runtime.facts.providers }),
    open: new Set(),
    connections: trackConnections(server, start.tls !== undefined),
    probes: new ProbeConnections(limits.probeConnections, limits.probeMs),
    pipelines: new Pipelines(waiting),
    waiting,
    openOn: new WeakMap(),
    silenced: new WeakSet(),
    localSocket: undefined,
    rehearsal: start.rehearsal,
    draining: false,
    hold: undefined,
  }
  listenTo(server, serverContext, callerRules)
  await preload(preloadFormats, preloadReports)
  // First, because a server that fails to start must not have answered anybody.
  serverContext.localSocket = await localSocket(server, serverContext)
  const { address, family, port } = await listening(server, start.host, start.port).catch(async (error: unknown) => {
    await serverContext.localSocket?.close()
    throw error
  })
  // Without a listener, a connection that the system cannot accept would end the process.
  server.on('error', (error) =>
    serverContext.log({ level: 'error', msg: 'could not accept a connection', stack: stackOf(error) }),
  )
  let stopped: Promise<void> | undefined
  const urlOf = (host: string): string => `${serverContext.secure ? 'https' : 'http'}://${host}:${port}`
  return {
    url: urlOf(reachable(address, family)),
    peer: urlOf(outside(address) ?? reachable(address, family)),
    host: address,
    port,
    certificate: (pair) => {
      const next = { ...start, tls: pair }
      // Throws what `setSecureContext` would throw.
      const secured = withCertificate(pair, () => createSecureContext({ ...pair, ...tlsVersions }))
      const [checkHost, strict] = withCertificate(pair, () => [hostsOf(next, options), strictTransport(next)])
      return () => {
        if (!(server instanceof HttpsServer) || !secured) return
        server.setSecureContext({ ...pair, ...tlsVersions })
        serverContext.checkHost = checkHost
        serverContext.strictTransport = strict
      }
    },
    stop: () => {
      stopped ??= drain(server, serverContext)
      return stopped
    },
  }
}

/** Everybody behind such a proxy shares one address, which changes the limits on sign-in for all of them (P5). */
const reportProxyOnce = ({ log, undeclaredProxy }: StartOptions): (() => void) =>
  logOnce(
    log,
    {
      level: 'warn',
      msg: 'A proxy on this machine relays requests and is not declared: all its callers share one limit on failed sign-ins. Declare it with --behind-proxy 127.0.0.1 or serve.behindProxy',
    },
    undeclaredProxy,
  )

/** Ciphers with AEAD and forward secrecy: all of TLS 1.3, and those of TLS 1.2 (S2). */
const ciphers = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  ...['ECDSA', 'RSA'].flatMap((key) =>
    ['AES128-GCM-SHA256', 'AES256-GCM-SHA384', 'CHACHA20-POLY1305'].map((cipher) => `ECDHE-${key}-${cipher}`),
  ),
].join(':')

const tlsVersions = { minVersion: 'TLSv1.2', ciphers } as const

const hostsOf = ({ host, tls }: StartOptions, { allowedHosts }: Pick<ServeOptions, 'allowedHosts'>): HostCheck =>
  hostCheck({ bound: host, allowedHosts, certificate: tls?.cert })

/** One year, in seconds. */
const strictSeconds = 31_536_000

/**
 * The value of Strict-Transport-Security, with which browsers use TLS for this host name in the future (S6). Undefined
 * with a self-signed certificate: browsers would then no longer let a person continue despite the warning.
 */
function strictTransport({ tls, options: { hsts } }: Pick<StartOptions, 'tls' | 'options'>): string | undefined {
  if (tls === undefined) return undefined
  const certificate = new X509Certificate(tls.cert)
  const isSelfSigned = certificate.subject === certificate.issuer && certificate.verify(certificate.publicKey)
  return isSelfSigned ? undefined : `max-age=${hsts ? strictSeconds : 0}`
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
    ? createHttps({ ...options, ...tls, ...tlsVersions, handshakeTimeout: limits.headersMs })
    : createHttp(options)
  // One above the limit, to detect an excess: Node silently drops further headers.
  server.maxHeadersCount = limits.headerCount + 1
  server.maxConnections = limits.connections + limits.probeConnections
  server.timeout = limits.silenceMs
  // A script that pipes a request into nc closes its side before the answer arrives.
  Object.assign(server, { httpAllowHalfOpen: true })
  return server
}

function listenTo(
  server: Server,
  serverContext: ServerContext,
  { isTrusted, behindProxy, processOf }: CallerRules,
): void {
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
  server.on('connection', (socket) => lingerOn(serverContext, socket))
  const refused = (): void => serverContext.metrics.refusedConnection()
  server.on('drop', refused)
  const { connectionsPerAddress: most, silentMs, searchEveryMs } = serverContext.limits
  const addressOf = (socket: Socket): string => plainAddress(socket.remoteAddress ?? '')
  const refuse = (socket: Socket): void => onlyProbes(serverContext, socket)
  const admitRemote = admit({ most, addressOf, refuse })
  const admitLocal = limitLocal({
    most,
    silentMs,
    searchEveryMs,
    processOf,
    refused,
    refuse,
    exemptsOwn: !behindProxy,
    firstBytes: serverContext.secure ? shortestHello : 1,
    busy: () => busyConnections(serverContext),
  })
  server.on('connection', (socket) => {
    if (serverContext.connections.transports.size > serverContext.limits.connections) refuse(socket)
    const address = addressOf(socket)
    if (isTrusted(address) || isOnLocalSocket(socket)) return
    if (isLoopback(address)) admitLocal(socket)
    else admitRemote(socket)
  })
}

/** A peer that closes its side may still be reading, or it may be gone. A timer decides. */
function lingerOn({ limits }: ServerContext, socket: Socket): void {
  socket.once('end', () => setTimeout(() => socket.destroy(), limits.lingerMs))
}

/** The bytes of a ClientHello without a session, with one cipher suite and without extensions. */
const shortestHello = 50

/** A test of transports for a request that has been read completely and whose answer has not been written yet. */
function busyConnections({ open }: ServerContext): (socket: Socket) => boolean {
  const peers = new Set<string>()
  for (const { request, response } of open) {
    if (request.complete && !response.writableEnded) peers.add(peerOf(request.socket))
  }
  return (socket) => peers.has(peerOf(socket))
}

/** Milliseconds until the Unix socket is made again that a full or read-only file system has refused. */
const socketAgainMs = 5_000

/** The Unix socket, at once or as soon as its file system takes it: everything else works without it (W16). */
async function localSocket(server: Server, serverContext: ServerContext): Promise<ServerContext['localSocket']> {
  const ended = new AbortController()
  let socket: ServerContext['localSocket']
  const later = async (): Promise<void> => {
    while (socket === undefined) {
      await pause(socketAgainMs, undefined, { signal: ended.signal, ref: false })
      socket = await openLocalSocket(server, serverContext).catch(() => undefined)
    }
  }
  let opening: Promise<void> | undefined
  try {
    socket = await openLocalSocket(server, serverContext)
  } catch (error) {
    if (!isFileOutage(error)) throw error
    serverContext.log({ level: 'warn', msg: `${(error as Error).message}: svc tries again until it can be made` })
    opening = later().catch(() => {})
  }
  const close = async (): Promise<void> => {
    ended.abort()
    await opening
    await socket?.close()
  }
  return { close }
}

/** Requests over the Unix socket are plain HTTP, whatever the port speaks. */
async function openLocalSocket(server: Server, serverContext: ServerContext): Promise<ServerContext['localSocket']> {
  const { options, limits, connections, secure, metrics } = serverContext
  if (options.socket === undefined) return undefined
  return await listenLocally({
    path: options.socket,
    group: options.socketGroup,
    connections: limits.connectionsPerAddress,
    refused: () => metrics.refusedConnection(),
    adopt: (socket) => {
      if (secure) {
        connections.adopt(socket)
        lingerOn(serverContext, socket)
      }
      // The event with which an HTTPS server takes a connection after its handshake.
      answerOn(server, secure ? 'secureConnection' : 'connection', socket)
    },
  })
}

/** Closes a connection beyond a limit if it has begun to ask for more than a probe, and answers it a probe otherwise. */
function onlyProbes({ open, metrics, probes }: ServerContext, socket: Socket): void {
  metrics.refusedConnection()
  const peer = peerOf(socket)
  const asksMore = [...open].some(({ request }) => !isProbe(request.url) && peerOf(request.socket) === peer)
  if (asksMore) socket.destroy()
  else probes.add(socket)
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
  EADDRINUSE: 'the address is already in use',
  EACCES: 'this account is not allowed to listen there',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'the name does not resolve',
  EAI_AGAIN: 'the name cannot be resolved at the moment',
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
  new Fault('Local', `Cannot listen on ${host}: it resolves to ${address}, which is not a loopback address`, {
    hints: [`If this is intended, specify the address: --host ${address}`],
  })

/** The first IPv4 address for other machines if `address` is a wildcard. Undefined: there is none, or it is not a wildcard. */
function outside(address: string): string | undefined {
  if (address !== '0.0.0.0' && address !== '::') return undefined
  const all = Object.values(networkInterfaces()).flatMap((entries = []) => entries)
  return all.find(({ internal, family }) => !internal && family === 'IPv4')?.address
}

/** Browsers cannot open a wildcard address. It includes the loopback address. */
function reachable(address: string, family: string): string {
  if (address === '0.0.0.0') return '127.0.0.1'
  if (address === '::') return '[::1]'
  return family === 'IPv6' ? `[${address}]` : address
}

function withCertificate<T>(tls: StartOptions['tls'], make: () => T): T {
  try {
    return make()
  } catch (error) {
    if (error instanceof Fault || tls === undefined) throw error
    throw new Fault('Local', `The certificate cannot be used: ${certificateProblem(tls, error)}`, {
      hints: ['Both must be PEM files, and the key must match the first certificate: --tls-cert, --tls-key'],
    })
  }
}
