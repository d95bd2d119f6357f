import { domainToASCII } from 'node:url'
import { showDuration } from '../../../base/format.ts'
import { isLoopbackHost } from '../../../base/loopback.ts'
import { hostOf, urlTarget } from '../../../base/net/url.ts'
import type { SettingsSpec, Values } from '../../../base/settings/index.ts'
import * as engine from '../../engine/index.ts'
import { type Registration, registrationOf } from './registration.ts'
import { rdapServerOf } from './servers.ts'

const { atLeast, classify, fail, notChecked, ok } = engine

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
  ...engine.oneFamilySettings,
  ...engine.proxySettings,
} as const satisfies SettingsSpec

/** `unanswered`: why nothing is known. The checks after `answer` run only with an answer. */
type Known = {
  readonly domain: string
  readonly server: string
  readonly now: number
  readonly unanswered?: string
  readonly registration: Registration
}
const check = engine.checksOn<Known>()
const observe = async (known: Known): Promise<Known> => known
const age = ({ now, registration: { at } }: Known): string => `answered ${showDuration(Math.max(0, now - at))} ago`

const answer = check({
  depth: 'Basic',
  results: { answer: 'The RDAP server of the registry has the domain; an answer counts for 6 h' },
  gate: true,
  first: true,
  observe: async (known) => known,
  evaluate: (known) => {
    const { server, domain, registration, unanswered } = known
    const { problem, isMissing } = registration
    if (unanswered !== undefined) return notChecked('answer', 'missing', unanswered)
    if (problem !== undefined) return notChecked('answer', 'missing', `${server} ${problem}`, { details: [age(known)] })
    if (!isMissing) return ok('answer', `${server} ${age(known)}`)
    return fail('answer', 'data', `${server} has no domain ${domain} (${age(known)}): it is not registered there`)
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
  evaluate: (known, { expires: threshold }) => {
    const { expires = Number.NaN } = known.registration
    const at = Number.isFinite(expires) ? new Date(expires) : undefined
    const what = `${known.domain} expires on ${at?.toISOString().slice(0, 10)},`
    const [figure, value] = [`the expiry of ${known.domain}`, (expires - known.now) / 86_400_000]
    const shown = { what, figure, after: 'left', details: [`The registry ${age(known)}`] }
    return atLeast({ check: 'expiry', value, unit: 'days', threshold, at, ...shown })
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
    const found = status.filter((one) => bad.includes(one.toLowerCase()))
    if (found.length > 0) return fail('status', 'data', `${domain} has the status ${found.join(', ')}`)
    return ok('status', status.slice(0, 8).join(', ') || 'none')
  },
})

async function lookUp(given: Values<typeof settings>, context: engine.CheckContext): Promise<Known> {
  const domain = asciiOf(given.domain)
  const base = given.server ?? rdapServerOf(domain)
  const [now, since] = [context.date().getTime(), context.now()]
  const known = { domain, server: base ? new URL(base).host : '', now, registration: { at: now } }
  context.step('answer', known.server)
  if (base === undefined) return { ...known, unanswered: `no RDAP server for ${domain} is known: set server` }
  const { signal, clear } = engine.deadlineSignal(context.signal, context.msLeft() / 2)
  try {
    const registration = await registrationOf(base, domain, engine.contextWith(context, { signal }))
    return { ...known, now: context.date().getTime(), registration }
  } catch (error) {
    if (context.signal.aborted) throw error
    return { ...known, unanswered: `no answer: ${classify(error, known.server, context.now() - since).message}` }
  } finally {
    clear()
  }
}

/** Asks a registry at most once in 6 h, and says nothing about the domain without its answer. */
export default engine.machineKind({
  name: 'domain',
  title: 'The registration of a domain lasts (RDAP)',
  recognition: 'none',
  runsOn: 'network',
  optionalParts: [{ part: 'User-Agent, Accept, Accept-Encoding', unasked: engine.ignoredHeaders }],
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
