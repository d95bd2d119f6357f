import { domainToASCII } from 'node:url'
import { showDuration } from '../../../base/format.ts'
import { isLoopbackHost } from '../../../base/loopback.ts'
import { hostOf, urlTarget } from '../../../base/net/url.ts'
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
    besides: 'At most one request for a domain in 6 h; other runs have its answer.',
  },
  settings,
  target: ({ domain, server }) => urlTarget({ url: server ?? rdapServerOf(asciiOf(domain)) ?? '' }),
  validate: ({ server }) => {
    const url = server === undefined ? null : URL.parse(server)
    return url?.protocol === 'http:' && !isLoopbackHost(hostOf(url))
      ? 'server has to be https, or on loopback'
      : undefined
  },
  open: lookUp,
  checks: [answer, expiry, status],
})
