import { bareHost, isLoopback } from '../../../base/loopback.ts'
import { whyDistrusted } from '../../../base/net/certificates.ts'
import { connectTcp, hostPort } from '../../../base/net/connect.ts'
import { verifySetting } from '../../../base/net/http/route.ts'
import { createRedactor, quote, sanitize } from '../../../base/net/text.ts'
import { connectTls } from '../../../base/net/tls-connect.ts'
import { readTrust, type TlsTrust, trustSettings, unusedTrust } from '../../../base/net/trust.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import { hostMistake, type SettingsSpec, type Values } from '../../../base/settings/index.ts'
import {
  type AddressTurn,
  atMost,
  type CheckContext,
  certificateCheck,
  certificateSetting,
  checksOn,
  fail,
  ignoredHeaders,
  includes,
  latencySetting,
  networkKind,
  ok,
  proxySettings,
  type Result,
} from '../../engine/index.ts'
import { bytes, type Recognition } from '../../recognition/index.ts'
import { type GrpcAnswer, GrpcConnection, type GrpcLink, healthRequest, servingStatus } from './connection.ts'

const maxServices = 50
const maxNameLength = 120

const connectLatency = latencySetting(
  { warn: 1_000, limit: 5_000 },
  'How long connecting, and then each answer, may take',
)

const connectSettings = {
  host: { type: 'text', observed: true, required: true, mistake: hostMistake, doc: 'Host name or address' },
  port: { type: 'integer', observed: true, required: true, min: 1, max: 65_535, doc: 'TCP port' },
  tls: { type: 'flag', default: false, doc: 'TLS from the first byte (ALPN h2); without it HTTP/2 in clear (h2c)' },
  verify: verifySetting,
  ...trustSettings,
  authority: {
    type: 'text',
    observed: true,
    pattern: /^[!-~]{1,255}$/,
    doc: 'Value of :authority; by default servername or host, with the port',
  },
  headers: { type: 'map', doc: 'Metadata of each call; put credentials in token' },
  token: { type: 'secret', form: 'header', doc: 'Bearer token; sent from Standard on' },
  tokenHeader: { type: 'text', doc: 'Metadata key that takes the bare token instead of authorization, e.g. x-api-key' },
  insecureGrpc: { type: 'flag', default: false, doc: 'Send the token without TLS to other machines too' },
  latency: connectLatency,
  ...proxySettings,
} as const satisfies SettingsSpec
type ConnectSettings = Values<typeof connectSettings>

/** Header names that HTTP/2 and gRPC reserve for themselves. */
const reservedKeys = new Set([
  'authorization',
  'connection',
  'content-length',
  'content-type',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
])
const isReserved = (key: string): boolean => reservedKeys.has(key) || key.startsWith('grpc-')

type GrpcSettings = ConnectSettings & Values<typeof health.settings>

/** Why the settings cannot be combined, or undefined. */
function validate(settings: GrpcSettings): string | undefined {
  const { tls, services = [], headers = {}, token, tokenHeader } = settings
  const unused = tls ? undefined : unusedTrust(settings, 'tls: true')
  if (unused !== undefined) return unused
  if (!tls && !settings.verify) return 'verify needs tls: true'
  if (services.length > maxServices) return `services has more than ${maxServices} names`
  const invalid = services.find((name) => name.length > maxNameLength || /\p{C}/u.test(name))
  if (invalid !== undefined)
    return `services: ${quote(invalid, 40)} is longer than ${maxNameLength} characters, or contains unprintable characters`
  if (new Set(services).size < services.length) return 'services lists a name twice'
  if (tokenHeader !== undefined && token === undefined) return 'tokenHeader needs token'
  for (const [name, key] of [
    ...Object.keys(headers).map((key) => ['headers', key] as const),
    ['tokenHeader', tokenHeader] as const,
  ]) {
    if (key === undefined) continue
    if (!/^[a-z0-9_.-]{1,100}$/i.test(key)) return `${name}: ${quote(key, 64)} is not a metadata key`
    const own = name === 'tokenHeader' && key.toLowerCase() === 'authorization'
    if (isReserved(key.toLowerCase()) && !own) return `${name} may not set ${sanitize(key, 64)}`
  }
  const unprintable = Object.entries(headers).find(([, value]) => !/^[ -~]*$/.test(value))
  return (
    unprintable &&
    `headers: the value of ${sanitize(unprintable[0], 64)} contains characters that are not printable ASCII`
  )
}

/** Reads the secret and the CA file, which all addresses share. Throws their errors. */
async function prepare(settings: ConnectSettings, { mode, files }: CheckContext) {
  const token = includes(mode, 'Standard') ? await settings.token?.reveal(files) : undefined
  if (token !== undefined && (token.trim() !== token || !/^[ -~]+$/.test(token))) {
    throw new ProbeError('data', 'the token contains a character that a header does not allow')
  }
  return { trust: await readTrust(settings, files), token }
}
type Prepared = Awaited<ReturnType<typeof prepare>>

async function open(
  at: AddressTurn,
  settings: ConnectSettings,
  context: CheckContext,
  { trust, token }: Prepared,
): Promise<GrpcConnection> {
  const { address } = at
  if (token !== undefined && !settings.tls && !settings.insecureGrpc && !isLoopback(at.ip)) {
    throw new ProbeError('data', `the token is not sent to ${address} without TLS: use tls: true, or insecureGrpc`)
  }
  const host = settings.servername ?? bareHost(settings.host)
  const { tokenHeader } = settings
  const credentials: Readonly<Record<string, string>> =
    token === undefined
      ? {}
      : tokenHeader === undefined
        ? { authorization: `Bearer ${token}` }
        : { [tokenHeader.toLowerCase()]: token }
  const plain = Object.entries(settings.headers ?? {}).map(([key, value]) => [key.toLowerCase(), value] as const)
  const link = {
    address,
    authority: settings.authority ?? hostPort(host, settings.port),
    metadata: { ...Object.fromEntries(plain), ...credentials },
    secretNames: Object.keys(credentials),
    redact: createRedactor(token === undefined ? [] : [token]),
  }
  return await GrpcConnection.open(link, async () =>
    settings.tls
      ? await openTls(at, { host, ...trust, verify: settings.verify, date: context.date })
      : { socket: await connectTcp(at.ip, at.port, at.signal), chain: undefined },
  )
}

type TlsSettings = TlsTrust & {
  readonly host: string
  readonly verify: boolean
  readonly date: () => Date
}

/** Throws ProbeError `tls` for a server that is not trusted, and `protocol` for one without HTTP/2. */
async function openTls(at: AddressTurn, settings: TlsSettings): Promise<Pick<GrpcLink, 'socket' | 'chain'>> {
  const noHttp2 = `${at.address} does not offer HTTP/2 over TLS (ALPN h2), which gRPC needs`
  const link = await connectTls(at, { ...settings, protocol: 'h2' }).catch((error: unknown) => {
    const isRefused =
      error instanceof ProbeError && error.details.some((code) => code.endsWith('NO_APPLICATION_PROTOCOL'))
    throw isRefused ? new ProbeError('protocol', noHttp2, error.details) : error
  })
  const why = settings.verify || link.chain.pin !== undefined ? whyDistrusted(link.chain) : undefined
  if (why === undefined && link.socket.alpnProtocol === 'h2') return link
  link.socket.destroy()
  throw why === undefined ? new ProbeError('protocol', noHttp2) : new ProbeError('tls', why)
}

const check = checksOn<GrpcConnection>()

const certificate = certificateCheck({
  depth: 'Standard',
  setting: certificateSetting,
  chain: ({ chain }: GrpcConnection) => chain,
})

const statusNames = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
]
const servicesSettings = {
  services: {
    type: 'texts',
    observed: true,
    doc: 'Services to query at the health service, e.g. shop.v1.Orders; by default the server as a whole',
  },
} as const satisfies SettingsSpec

/** The health service's answer about one service; `service` is empty for the server as a whole. */
type Reply = {
  readonly address: string
  readonly service: string
  readonly signedIn: boolean
  readonly ms: number
  /** An error if the response is not a gRPC answer, although the connection is usable for the next call. */
  readonly outcome: GrpcAnswer | ProbeError
}

async function* askHealth(
  grpc: GrpcConnection,
  { services = [] }: Values<typeof servicesSettings>,
  { now, msLeft }: CheckContext,
): AsyncGenerator<Reply> {
  const { address, signsIn: signedIn } = grpc
  for (const service of services.length > 0 ? services : ['']) {
    const since = now()
    const call = grpc.call('/grpc.health.v1.Health/Check', healthRequest(service), msLeft())
    const outcome = await call.catch((error: unknown) => {
      if (error instanceof ProbeError && grpc.usable) return error
      throw error
    })
    yield { address, service, signedIn, ms: now() - since, outcome }
  }
}

const health = check({
  depth: 'Standard',
  results: { health: 'The health service (grpc.health.v1) answers SERVING: for the server, or for each of `services`' },
  settings: servicesSettings,
  items: ({ services = [] }) => services,
  observe: askHealth,
  evaluate: (reply) => ({ ...evaluateReply(reply), subject: reply.service === '' ? undefined : reply.service }),
})

const latency = check({
  depth: 'Standard',
  results: { latency: 'Each answer of the health service arrives in time' },
  settings: { ...servicesSettings, latency: connectLatency },
  items: ({ services = [] }) => services,
  observe: askHealth,
  evaluate: ({ address, service, ms: value, outcome }, { latency: threshold }) => {
    if (outcome instanceof ProbeError) return []
    const what = `${address} answered${service === '' ? '' : ` for ${sanitize(service, maxNameLength)}`} in`
    const subject = service === '' ? undefined : service
    return { ...atMost({ check: 'latency', what, value, unit: 'duration', threshold }), subject }
  },
})

function evaluateReply({ address, service, signedIn, outcome }: Reply): Result<'health'> {
  const about = service === '' ? '' : ` for ${sanitize(service, maxNameLength)}`
  if (outcome instanceof ProbeError) {
    const { fault, message, details } = outcome
    return fail('health', fault, about === '' ? message : `${message} (query${about})`, { details })
  }
  const { code, message } = outcome
  if (message === undefined) {
    const [fault, meaning] = meaningOf(code, about, signedIn)
    const text = outcome.text === '' ? '' : `: ${quote(outcome.text, 160)}`
    return fail('health', fault, `${address} ${meaning} (${statusNames[code] ?? `status ${code}`}${text})`)
  }
  switch (servingStatus(message)) {
    case 1:
      return ok('health', `${address} answers SERVING${about}`)
    case 2:
      return fail('health', 'data', `${address} answers NOT_SERVING${about}`)
    case 3:
      return fail('health', 'data', `${address} does not know the service: it answers SERVICE_UNKNOWN${about}`)
    case 0:
      return fail('health', 'data', `${address} does not report whether it serves: it answers UNKNOWN${about}`)
    case undefined:
      return fail('health', 'protocol', `${address} answered with a message that is not a HealthCheckResponse${about}`)
    default:
      return fail('health', 'protocol', `${address} answered with a status that grpc.health.v1 does not define${about}`)
  }
}

/** The fault class and the meaning of a gRPC status other than OK. */
function meaningOf(code: number, about: string, signedIn: boolean): readonly [NonNullable<Result['fault']>, string] {
  switch (statusNames[code]) {
    case 'UNIMPLEMENTED':
      return ['protocol', 'has no health service grpc.health.v1.Health']
    case 'NOT_FOUND':
      return about === ''
        ? ['data', 'has no status for the server as a whole: list its services in services']
        : ['data', `has no status${about}`]
    case 'UNAUTHENTICATED':
    case 'PERMISSION_DENIED':
      return [
        'auth',
        signedIn ? 'refuses the token of this monitor' : 'asks for credentials, and this monitor has none',
      ]
    case 'DEADLINE_EXCEEDED':
      return ['timeout', `did not finish its answer${about} in time`]
    case 'RESOURCE_EXHAUSTED':
    case 'UNAVAILABLE':
      return ['refused', `cannot answer${about} now`]
    default:
      return ['protocol', `failed to answer${about}`]
  }
}

/** The beginning of a client of HTTP/2: its preface and empty SETTINGS. */
const preface = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), bytes('000000 04 00 00000000')])

/**
 * A server with HTTP/2 alone, whose first frame is SETTINGS (RFC 9113, 3.4): those with HTTP/1, too, answer that first. Its
 * first run shows whether it has the health service.
 */
const http2Server: Recognition = {
  name: 'grpc',
  is: (reply) =>
    reply.length >= 9 && reply[3] === 0x04 && reply.readUIntBE(0, 3) % 6 === 0 && reply.readUInt32BE(5) === 0,
  pool: 'alike',
  propose: ({ host, port }, name) => ({ entry: { kind: 'grpc', name, host, port } }),
}

/** Speaks HTTP/2, calls the Check method of the health service, and closes the connection. */
export default networkKind({
  name: 'grpc',
  title: 'A gRPC server reports that it is serving (grpc.health.v1)',
  exposure: 'What the service lets the bearer of the token do. Issue one that may call the health service only.',
  // Some begin at once, others after the client has.
  recognition: [http2Server, { ...http2Server, greeting: preface }],
  optionalParts: [{ part: 'user-agent, grpc-timeout, grpc-accept-encoding', unasked: ignoredHeaders }],
  cost: {
    unit: 'calls',
    Basic: [1, 0],
    Standard: [1, 1],
    Advanced: [1, 1],
    adds: [
      // Each service instead of the whole server.
      { setting: 'services', from: 'Standard', requests: -1 },
      { setting: 'services', each: true, from: 'Standard', requests: 1 },
      { setting: 'token', from: 'Standard', signIns: 1 },
    ],
    besides:
      'With a token, each call is a sign-in. A server that ends the connection between two calls gets another one.',
  },
  settings: connectSettings,
  target: ({ host, port }) => ({ host, port }),
  signsIn: ({ token }, mode) =>
    token !== undefined && includes(mode, 'Standard')
      ? { account: 'token', secrets: [token], result: 'health' }
      : undefined,
  validate,
  prepare,
  connect: {
    results: { connect: 'The port speaks HTTP/2, with TLS as configured, in time; no call is made' },
    open,
    evaluate: ({ connection: { address, chain }, ms: value }, { latency: threshold }) => {
      const what = `${address} opened an HTTP/2 connection${chain ? ` over ${chain.protocol}` : ''} in`
      return atMost({ check: 'connect', what, value, unit: 'duration', threshold })
    },
  },
  checks: [certificate, health, latency],
})
