import type { Fault } from '../base/errors.ts'
import { filesWithin, patienceMs } from '../base/files/index.ts'
import { lazy } from '../base/lazy.ts'
import { isLoopbackHost } from '../base/loopback.ts'
import { hostOf, urlTarget } from '../base/net/url.ts'
import { sanitizeLine } from '../base/sanitize.ts'
import {
  isMap,
  type Problem,
  type Raw,
  readSettings,
  type Secret,
  type SettingsContext,
  type SettingsSpec,
  type Values,
} from '../base/settings/index.ts'
import { didYouMean } from '../base/suggest.ts'
import { ExecutionMode, ServerType } from '../protocol/index.ts'
import { parseDocument } from './document.ts'
import { configTrust, readFile } from './find.ts'
import { line, type Placed, refusal } from './load.ts'
import { plainListOf } from './plain-list.ts'

const typeMistake = (text: string): string | undefined => {
  if (text === 'all' || ServerType.values.some((type) => type === text)) return undefined
  const meant = didYouMean(text, ServerType.values)
  return `must be one of ${ServerType.values.join(', ')} or all${meant === undefined ? '' : `: did you mean ${meant}?`}`
}

/** A server of a fleet file. */
export const fleetServerSettings = {
  name: {
    type: 'text',
    required: true,
    mistake: (text: string) =>
      text.length > 100 || sanitizeLine(text) !== text ? 'must have at most 100 characters, all printable' : undefined,
    doc: 'Name in every output, unique in the file',
  },
  url: {
    type: 'url',
    required: true,
    protocols: ['https', 'http'],
    doc: 'Base URL of svc serve or of a ServiceStack service',
  },
  types: {
    type: 'texts',
    needsOne: true,
    mistake: typeMistake,
    doc: 'Server types to check, or all; --type overrides it. Default: those that the server has configured. A server that does not list them needs it',
  },
  mode: {
    type: 'choice',
    values: ExecutionMode.values,
    doc: 'Check depth; --mode overrides it. Default: Standard',
  },
  tags: { type: 'texts', doc: 'Tags for --tag' },
  dependsOn: {
    type: 'texts',
    doc: 'Servers and devices of this file that it is behind. While they cannot be reached either, it stands in their line',
  },
  credential: {
    type: 'secret',
    form: 'header',
    doc: 'Token or API key, sent with every request. Default: the sign-in of a profile with exactly this URL, after the server asks for it',
  },
  caFile: {
    type: 'text',
    absolute: true,
    doc: 'PEM file of a private certificate authority, as an absolute path; --ca-file overrides it',
  },
  proxy: {
    type: 'url',
    protocols: ['http', 'https'],
    doc: 'Proxy, in place of the one in HTTPS_PROXY or HTTP_PROXY',
  },
  proxyUsername: { type: 'text', doc: 'User at the proxy, with proxyPassword' },
  proxyPassword: { type: 'secret', doc: 'Password at the proxy, which gets it without TLS unless its URL is https' },
  insecureHttp: { type: 'flag', default: false, doc: 'Allows plain http to another machine' },
} as const satisfies SettingsSpec

/** The file of `svc health --fleet`. */
export const fleetSettings = {
  servers: { type: 'groups', required: true, fields: fleetServerSettings, doc: 'Servers' },
  devices: {
    type: 'texts',
    doc: 'Other things that servers are behind, for dependsOn: a switch, a link, a site. svc does not contact them',
  },
} as const satisfies SettingsSpec

export type FleetServer = Omit<Values<typeof fleetServerSettings>, 'types' | 'mode'> & {
  readonly types?: readonly (ServerType | 'all')[] | undefined
  readonly mode?: ExecutionMode | undefined
}
export type Fleet = {
  readonly servers: readonly FleetServer[]
  readonly devices: readonly string[]
  /** The servers and devices that each server is behind, the nearest first. */
  readonly before: ReadonlyMap<string, readonly string[]>
  /** `file:line:column: …`: what will fail at run time, such as a missing secret. */
  readonly warnings: readonly string[]
}

export type FleetOptions = Pick<SettingsContext, 'env' | 'keychain'> & {
  readonly path: string
  readonly platform: NodeJS.Platform
  readonly uid: number | undefined
  /** Called with the length of the file before it is parsed, for a caller that prepares for much memory. */
  readonly onLength: (characters: number) => void
  /** `--insecure-http`: plain http to other machines is no mistake. */
  readonly insecureHttp: boolean
}

/**
 * Reads a fleet file, which has to be as trusted as svc.yaml. Throws Fault `Local`, which lists every mistake with its
 * place, `file:line:column`.
 */
export async function loadFleet(options: FleetOptions): Promise<Fleet> {
  const { platform, uid, env, keychain, insecureHttp } = options
  const paths = await import('node:path')
  const file = paths.resolve(options.path)
  const trust = configTrust({ platform, uid, files: filesWithin(patienceMs) })
  const text = (await readFile({ path: file, from: '--fleet' }, trust)) ?? ''
  options.onLength(text.length)
  const simple = jsonOf(text) ?? plainListOf('servers', text)
  const document = lazy(async () => await parseDocument(text))
  if (simple === undefined) {
    const { problems } = await document.get()
    if (problems.length > 0) throw await refused(file, text, problems, true)
  }
  const value = simple ?? (await document.get()).value
  const context: SettingsContext = { env, folder: paths.dirname(file), keychain }
  const { values, problems, warnings } = readSettings(fleetSettings, value, context)
  const placed = async (all: readonly Problem[]): Promise<readonly PlacedProblem[]> =>
    await Promise.all(all.map(async (one) => ({ ...one, place: (await document.get()).placeOf(one.path) })))
  const mistakes = problems.length > 0 ? problems : mistakesIn(values, insecureHttp)
  if (mistakes.length > 0) throw await refused(file, text, await placed(mistakes), false)
  const lines = (await placed(warnings)).map((warning) => line({ ...warning, file, text }))
  const written = isMap(value) ? (value['servers'] as readonly Raw[]) : []
  const servers = (values.servers as readonly FleetServer[]).map((server, at) => {
    const { url, credential, proxy = '', proxyPassword } = server
    return {
      ...server,
      ...(credential && { credential: secretAt(url, 'credential', written[at], context) }),
      ...(proxyPassword && { proxyPassword: secretAt(proxy, 'proxyPassword', written[at], context) }),
    }
  })
  const byName = new Map(servers.map((server) => [server.name, server.dependsOn] as const))
  const before = new Map(servers.map(({ name }) => [name, ancestorsOf(name, (one) => byName.get(one))] as const))
  return { servers, devices: values.devices ?? [], before, warnings: [...trust.warnings(), ...lines] }
}

/**
 * The value of a file in JSON, which is YAML as well and takes a hundredth of the time and memory. Undefined if it is not
 * JSON, or perhaps has two members of one name, of which JSON.parse keeps the last.
 */
function jsonOf(text: string): unknown {
  if (!text.startsWith('{')) return undefined
  try {
    const value: unknown = JSON.parse(text)
    const compact = text.replaceAll(/("(?:[^"\\]|\\.)*"?)|\s+/g, '$1')
    return JSON.stringify(value) === compact ? value : undefined
  } catch {
    return undefined
  }
}

/** A secret of the keychain is bound to a host and port: those of the server or proxy that gets it. */
function secretAt(
  url: string,
  name: 'credential' | 'proxyPassword',
  written: unknown,
  context: SettingsContext,
): Secret | undefined {
  const target = () => urlTarget({ url })
  return readSettings(fleetServerSettings, written, { ...context, target }).values[name]
}

function mistakesIn(
  { servers, devices = [] }: Values<typeof fleetSettings>,
  insecureHttp: boolean,
): readonly Problem[] {
  const byName = new Map(servers.map((server) => [server.name, server]))
  const names = new Set([...byName.keys(), ...devices])
  const dependsOn = (name: string): readonly string[] | undefined => byName.get(name)?.dependsOn
  return [
    ...(servers.length === 0 ? [{ path: ['servers'], message: 'lists no server: add one' }] : []),
    ...devices.flatMap((name, at) =>
      byName.has(name) ? [{ path: ['devices', at], message: 'is also the name of a server: rename one of them' }] : [],
    ),
    ...servers.flatMap((server, at): Problem[] => {
      const mistake = urlMistake(server.url, insecureHttp || server.insecureHttp)
      const unknown = (server.dependsOn ?? []).flatMap((name, index) =>
        names.has(name) ? [] : [{ path: ['servers', at, 'dependsOn', index], message: unknownMistake(name, names) }],
      )
      const path = ['servers', at, 'dependsOn']
      const { proxy, proxyUsername, proxyPassword } = server
      const account = [proxyUsername, proxyPassword, proxy].filter((one) => one !== undefined).length
      const isHalf = (proxyUsername ?? proxyPassword) !== undefined && account < 3
      return [
        ...(isHalf
          ? [
              {
                path: ['servers', at],
                message: 'has a part of a sign-in at a proxy: write proxy, proxyUsername and proxyPassword',
              },
            ]
          : []),
        ...(mistake === undefined ? [] : [{ path: ['servers', at, 'url'], message: mistake }]),
        ...unknown,
        ...(ancestorsOf(server.name, dependsOn).includes(server.name)
          ? [{ path, message: 'leads back to this server: remove a step' }]
          : []),
      ]
    }),
  ]
}

function urlMistake(written: string, insecureHttp: boolean): string | undefined {
  const url = new URL(written)
  const { protocol, username, search, hash } = url
  if (username !== '') return 'contains a user name: remove it, and use `credential:`'
  if (search !== '' || hash !== '') return 'contains a query or fragment: write the base URL alone'
  return protocol === 'https:' || insecureHttp || isLoopbackHost(hostOf(url))
    ? undefined
    : 'is plain http to another machine: write https, or on a trusted network add `insecureHttp: true`'
}

function unknownMistake(name: string, names: ReadonlySet<string>): string {
  const meant = didYouMean(name, [...names])
  const suggestion = meant === undefined ? 'add it there' : `did you mean ${JSON.stringify(meant)}?`
  return `names ${JSON.stringify(name)}, which is neither a server nor one of \`devices:\` of this file: ${suggestion}`
}

/** The servers and devices that a server is behind, the nearest first: also itself, if its entries lead back to it. */
export function ancestorsOf(
  name: string,
  dependsOn: (name: string) => readonly string[] | undefined,
): readonly string[] {
  const all = new Set<string>()
  for (let step = dependsOn(name) ?? []; step.length > 0; ) {
    const fresh = step.filter((one) => !all.has(one))
    for (const one of fresh) all.add(one)
    step = fresh.flatMap((one) => dependsOn(one) ?? [])
  }
  return [...all]
}

type PlacedProblem = Omit<Placed, 'file' | 'text'>

const refused = (file: string, text: string, problems: readonly PlacedProblem[], isSyntax: boolean): Promise<Fault> =>
  refusal(
    file,
    problems.map((problem) => ({ ...problem, file, text })),
    isSyntax,
    { next: 'Correct the file, then run the command again', settings: fleetSettings },
  )
