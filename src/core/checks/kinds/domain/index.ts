import { Resolver } from 'node:dns/promises'
import { domainToASCII } from 'node:url'
import { showDuration } from '../../../base/format.ts'
import { isLoopbackHost } from '../../../base/loopback.ts'
import { hostPort } from '../../../base/net/connect.ts'
import { sanitize } from '../../../base/net/text.ts'
import { hostOf, hostPortMistake, parseHostPort, urlTarget } from '../../../base/net/url.ts'
import type { SettingsSpec, Values } from '../../../base/settings/index.ts'
import {
  atLeast,
  type CheckContext,
  checksOn,
  classify,
  contextWith,
  deadlineSignal,
  fail,
  ignoredHeaders,
  machineKind,
  notChecked,
  ok,
  oneFamilySettings,
  proxySettings,
  warn,
} from '../../engine/index.ts'
import { type Registration, registrationOf } from './registration.ts'
import { rdapServerOf } from './servers.ts'

/** The name in lower case and ASCII, as registries have it. */
const asciiOf = (domain: string): string => domainToASCII(domain).toLowerCase().replace(/\.$/, '')

const settings = {
  domain: {
    type: 'text',
    observed: true,
    required: true,
    mistake: (text) =>
      /^[a-z\d_-]+(?:\.[a-z\d_-]+)*\.[a-z][a-z\d-]+$/.test(asciiOf(text))
        ? undefined
        : 'is not a domain like example.org',
    doc: 'Domain as it is registered, without a host such as www',
  },
  server: {
    type: 'url',
    protocols: ['http', 'https'],
    doc: 'Base URL of the RDAP server of the registry: https, or http on loopback; by default the one that svc has for the top-level domain',
  },
  ...oneFamilySettings,
  ...proxySettings,
} as const satisfies SettingsSpec

/** `unanswered`: why nothing is known. The checks after `answer` run only with an answer. */
type DomainState = {
  readonly domain: string
  readonly server: string
  readonly now: number
  readonly unanswered?: string
  readonly registration: Registration
}
const check = checksOn<DomainState>()
const observe = async (state: DomainState): Promise<DomainState> => state
const age = ({ now, registration: { at } }: DomainState): string =>
  `answered ${showDuration(Math.max(0, now - at))} ago`

const answer = check({
  depth: 'Basic',
  results: { answer: 'The RDAP server of the registry has the domain; an answer counts for 6 h' },
  gate: true,
  // Not the function of the others: those that share one are evaluated together, and a gate does not stop them.
  observe: async (state) => state,
  evaluate: (state) => {
    const { server, domain, registration, unanswered } = state
    const { problem, isMissing } = registration
    if (unanswered !== undefined) return notChecked('answer', 'missing', unanswered)
    if (problem !== undefined) return notChecked('answer', 'missing', `${server} ${problem}`, { details: [age(state)] })
    if (!isMissing) return ok('answer', `${server} ${age(state)}`)
    return fail('answer', 'data', `${server} has no domain ${domain} (${age(state)}): it is not registered there`)
  },
})

const expiry = check({
  depth: 'Basic',
  results: { expiry: 'The registration lasts long enough' },
  settings: {
    expires: {
      type: 'threshold',
      unit: 'days',
      default: { warn: 30, limit: 10 },
      doc: 'Minimum days until it expires',
    },
  },
  observe,
  evaluate: (state, { expires: threshold }) => {
    const { expires = Number.NaN } = state.registration
    const at = Number.isFinite(expires) ? new Date(expires) : undefined
    const what = `${state.domain} expires on ${at?.toISOString().slice(0, 10)},`
    const [figure, value] = [`the expiry of ${state.domain}`, (expires - state.now) / 86_400_000]
    const texts = { what, figure, after: 'left', details: [`The registry ${age(state)}`] }
    return atLeast({ check: 'expiry', value, unit: 'days', threshold, at, ...texts })
  },
})

/** The status codes of EPP that fail, as RDAP writes them (RFC 8056). */
const bad = ['client hold', 'server hold', 'redemption period', 'pending delete']

const status = check({
  depth: 'Basic',
  results: { status: `The domain has none of the status codes ${bad.join(', ')}` },
  observe,
  evaluate: ({ domain, registration: { status } }) => {
    if (status === undefined) return notChecked('status', 'missing', `the status of ${domain} is not reported`)
    const matches = status.filter((one) => bad.includes(one.toLowerCase()))
    if (matches.length > 0) return fail('status', 'data', `${domain} has the status ${matches.join(', ')}`)
    return ok('status', status.slice(0, 8).join(', ') || 'none')
  },
})

/** The name servers that the zone itself has, or why they are unknown. `isMissing`: DNS has no such zone. */
type Zone = { readonly names?: readonly string[]; readonly problem?: string; readonly isMissing?: boolean }

async function zoneOf(domain: string, place: string | undefined, { resolve, msLeft }: CheckContext): Promise<Zone> {
  const resolver = new Resolver({ timeout: Math.min(2_000, Math.floor(msLeft() / 3)), tries: 2 })
  try {
    if (place !== undefined) {
      const { host, port } = parseHostPort(place, 53) ?? { host: place, port: 53 }
      resolver.setServers((await resolve(host)).map((ip) => hostPort(ip, port)))
    }
    return { names: (await resolver.resolveNs(domain)).map((name) => sanitize(name, 255).toLowerCase()) }
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException
    return { problem: code, isMissing: code === 'ENOTFOUND' || code === 'ENODATA' }
  }
}

const sorted = (names: readonly string[]): string => [...names].sort().slice(0, 13).join(', ')

const nameServers = check({
  depth: 'Standard',
  results: { 'name servers': 'The name servers of the registration are those of the zone' },
  settings: {
    nameServers: {
      type: 'flag',
      default: false,
      doc: 'Compare the name servers of the registration with the NS records of the zone, by one DNS query in each run',
    },
    resolver: {
      type: 'text',
      mistake: hostPortMistake,
      doc: 'Name server to ask for the NS records, as host, host:port or [ip6]:port; by default those of this machine',
    },
  },
  applies: (_, values) => values.nameServers,
  observe: async (state, { resolver }, context) => ({ ...state, zone: await zoneOf(state.domain, resolver, context) }),
  evaluate: ({ domain, registration, zone: { names = [], problem, isMissing } }) => {
    const { nameServers: registry } = registration
    const about = 'name servers'
    if (registry === undefined) return notChecked(about, 'missing', `the name servers of ${domain} are not reported`)
    if (isMissing)
      return fail(about, 'data', `DNS has no zone ${domain}, which the registry has at ${sorted(registry)}`)
    if (problem !== undefined)
      return notChecked(about, 'missing', `the zone ${domain} cannot be looked up (${problem})`)
    if (sorted(names) === sorted(registry)) return ok(about, sorted(registry))
    const message = `${domain} is registered with ${sorted(registry)}, and its zone names ${sorted(names)}`
    return names.some((name) => registry.includes(name)) ? warn(about, message) : fail(about, 'data', message)
  },
})

async function lookUp(values: Values<typeof settings>, context: CheckContext): Promise<DomainState> {
  const domain = asciiOf(values.domain)
  const base = values.server ?? rdapServerOf(domain)
  const [now, since] = [context.date().getTime(), context.now()]
  const state = { domain, server: base ? new URL(base).host : '', now, registration: { at: now } }
  context.step('answer', state.server)
  if (base === undefined) return { ...state, unanswered: `no RDAP server for ${domain} is known: set server` }
  const { signal, clear } = deadlineSignal(context.signal, context.msLeft() / 2)
  try {
    const registration = await registrationOf(base, domain, contextWith(context, { signal }))
    return { ...state, now: context.date().getTime(), registration }
  } catch (error) {
    if (context.signal.aborted) throw error
    return { ...state, unanswered: `no answer: ${classify(error, state.server, context.now() - since).message}` }
  } finally {
    clear()
  }
}

/** Asks a registry at most once in 6 h, and says nothing about the domain without its answer. */
export default machineKind({
  name: 'domain',
  title: 'The registration of a domain lasts (RDAP)',
  recognition: 'none',
  runsOn: 'network',
  optionalParts: [{ part: 'User-Agent, Accept, Accept-Encoding', unasked: ignoredHeaders }],
  cost: {
    unit: 'HTTP requests',
    Basic: [1, 1],
    Standard: [1, 1],
    Advanced: [1, 1],
    besides:
      'At most one request for a domain in 6 h; other runs have its answer. With nameServers, one DNS query in each run.',
  },
  settings,
  target: ({ domain, server }) => urlTarget({ url: server ?? rdapServerOf(asciiOf(domain)) ?? '' }),
  validate: ({ server, resolver, nameServers: areCompared }) => {
    if (resolver !== undefined && !areCompared) return 'resolver needs nameServers: true'
    const url = server === undefined ? null : URL.parse(server)
    return url?.protocol === 'http:' && !isLoopbackHost(hostOf(url))
      ? 'server has to be https, or on loopback'
      : undefined
  },
  open: lookUp,
  checks: [answer, expiry, status, nameServers],
})
