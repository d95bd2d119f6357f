import { isMap, type Raw } from '../../base/settings/index.ts'
import type { Declined } from './declined.ts'
import {
  Draft,
  duration,
  escaped,
  hostPort,
  literal,
  maps,
  milliseconds,
  type SettingRules,
  type ToolFormat,
  tag,
  texts,
  to,
} from './draft.ts'

const startTls: Readonly<Record<string, string>> = { 21: 'ftp', 110: 'pop3', 143: 'imap', 389: 'ldap', 5222: 'xmpp' }
/** The first monitor for a URL, by its scheme, or why there is none. */
const schemes: Readonly<Record<string, Declined | ((url: string) => Raw)>> = {
  http: (url) => ({ kind: 'http', url, redirects: 10 }),
  https: (url) => ({ kind: 'http', url, redirects: 10 }),
  tcp: (url) => ({ kind: 'tcp', ...hostPort(url) }),
  tls: (url) => ({ kind: 'tls', ...hostPort(url, 443) }),
  starttls: (url) => ({ kind: 'tls', ...hostPort(url), starttls: startTls[String(hostPort(url)['port'])] ?? 'smtp' }),
  icmp: (url) => ({ kind: 'ping', host: hostPort(url)['host'] }),
  grpc: (url) => ({ kind: 'grpc', ...hostPort(url) }),
  grpcs: (url) => ({ kind: 'grpc', ...hostPort(url), tls: true }),
  ssh: 'ssh',
  udp: 'transport',
  sctp: 'transport',
  ws: 'websocket',
  wss: 'websocket',
}

const rules: SettingRules = {
  'name dns url': to.done,
  group: (value, { tags }) => void tags.push(tag(value)),
  enabled: (value, draft) => (value === false ? draft.disable('enabled', 'disabled') : undefined),
  method: to.method,
  body: (value, draft) => draft.set(draft.main['kind'] === 'tcp' ? 'send' : 'body', value),
  graphql: to.disable('condition'),
  headers: to.headers,
  interval: to.every('ms'),
  ssh: 'ssh',
  alerts: (value, draft) => {
    for (const { 'failure-threshold': failures = 3 } of maps(value)) {
      to.confirm(draft, Number(failures), milliseconds(draft.entry['interval'] ?? '1m'))
    }
    return 'alert'
  },
  'client.insecure': to.whenTrue('verify', false),
  'client.ignore-redirect': to.whenTrue('redirects', 0),
  'client.timeout': to.timeout('ms'),
  'client.proxy-url': to.proxy,
  'client.network': to.set('family', (value) => ({ ip4: 'ipv4', ip6: 'ipv6' })[String(value)]),
  'client.oauth2': (it, draft) => {
    const { 'token-url': url, 'client-id': id, 'client-secret': secret, scopes } = isMap(it) ? it : {}
    return to.oauth2(draft, [url, id, secret, scopes])
  },
  'client.tls.certificate-file': to.set('clientCert'),
  'client.tls.private-key-file': to.set('clientKey'),
  'client.tunnel': to.disable('ssh'),
  'client.identity-aware-proxy': to.disable('sign-in'),
  conditions: (value, draft) => {
    const all = texts(value).map((text) => [text, form.exec(text.trim())?.slice(1) ?? []] as const)
    if (draft.main['kind'] === 'http') {
      draft.set('status', statuses(all.flatMap(([, [, name, , ...more]]) => (name === 'STATUS' ? [more] : []))))
    }
    for (const [text, parts] of all) {
      const why = condition(parts, draft)
      if (why !== undefined) draft.decline(text, why)
    }
    return undefined
  },
}

const form = /^(?:(len|has)\()?\[(\w+)\]([^\s)]*)\)?\s*(==|!=|<=|>=|<|>)\s*(.*)$/s

/** Reads a condition into settings, or says why not. `STATUS` has been read. */
function condition([of, name, path = '', operator = '', operand = '']: readonly (string | undefined)[], draft: Draft) {
  const { main } = draft
  const kind = String(main['kind'])
  if (name === 'STATUS' && kind === 'http') return undefined
  if (name === 'CONNECTED' && operator === '==' && operand === 'true') return undefined
  if (name === 'CONNECTED' && kind === 'tcp') return draft.set('state', 'closedOrFiltered')
  if (name === 'CONNECTED') return draft.disable('[CONNECTED]', 'inverted')
  if (name === 'RESPONSE_TIME' && operator.startsWith('<')) {
    return draft.set(kind === 'ping' ? 'roundTrip' : 'latency', { warn: 'off', limit: duration(milliseconds(operand)) })
  }
  if (name === 'CERTIFICATE_EXPIRATION' && operator.startsWith('>')) {
    const expiry = { warn: 'off', limit: `${Math.ceil(milliseconds(operand) / 86_400_000)}d` }
    if (kind !== 'http') return draft.set(kind === 'grpc' ? 'certificate' : 'expiry', expiry)
    // The kind http checks certificates only in Advanced.
    const shared = Object.entries(main).filter(([key]) => key === 'verify' || key === 'proxy')
    const { host } = new URL(String(main['url']))
    draft.others.push({ kind: 'tls', ...hostPort(host, 443), expiry, ...Object.fromEntries(shared) })
    return undefined
  }
  if (name === 'DOMAIN_EXPIRATION' && operator.startsWith('>')) {
    return draft.domain(main, { warn: 'off', limit: `${Math.ceil(milliseconds(operand) / 86_400_000)}d` })
  }
  if (name === 'DNS_RCODE' && operator === '==') return operand === 'NOERROR' ? undefined : draft.set('rcode', operand)
  if (name === 'IP') return 'address'
  if (name !== 'BODY' || (path === '' && (of !== undefined || !/^[!=]=$/.test(operator)))) return 'condition'
  return path === '' ? wholeBody(operator === '!=', operand, draft) : jsonValue([of, path, operator, operand], draft)
}

/** `pat(*x*)` or `any(a, b)` as a pattern of the whole text; undefined for another operand. */
function patternOf(operand: string): string | undefined {
  const [, form, inner = ''] = /^(pat|any)\((.*)\)$/s.exec(operand) ?? []
  if (form === undefined) return undefined
  if (form === 'pat') return `/^${inner.split('*').map(escaped).join('.*')}$/s`
  return `/^(?:${inner
    .split(',')
    .map((one) => escaped(one.trim()))
    .join('|')})$/`
}

function wholeBody(isNegated: boolean, operand: string, draft: Draft): Declined | undefined {
  const [, inside] = /^pat\(\*([^*]+)\*\)$/.exec(operand) ?? []
  const expected = inside ?? patternOf(operand) ?? `/^${escaped(operand)}$/`
  const { kind } = draft.main
  if (kind === 'http')
    return draft.expect(inside === undefined ? 'matches' : 'contains', isNegated ? { not: expected } : expected)
  if (isNegated || (kind === 'dns' && operand.includes('('))) return 'condition'
  return kind === 'dns' ? draft.set('expect', [operand]) : kind === 'tcp' ? draft.set('expect', expected) : 'condition'
}

function jsonValue([of, path, operator, operand]: readonly (string | undefined)[], draft: Draft): Declined | undefined {
  if (draft.main['kind'] !== 'http') return 'condition'
  const at = `$${path?.replaceAll(/\.([^.[\]]+)/g, (step, name: string) => (/^[\p{L}_][\p{L}\p{N}_]*$/u.test(name) ? step : `['${name}']`))}`
  const isEqual = operator === '=='
  const compared = `${operator} ${operand}`
  if (of === 'has') return draft.expect('json', (operand === 'true') === isEqual ? '>= 1' : '0', `count(${at})`)
  if (of === 'len') return draft.expect('json', isEqual ? operand : compared, `count(${at}[*])`)
  const matched = patternOf(operand ?? '')
  if (matched !== undefined && operator === '!=') return draft.expect('json', { not: matched }, at)
  return draft.expect('json', isEqual ? (matched ?? literal(operand)) : compared, at)
}

const compare: Readonly<Record<string, (status: number, figure: number) => boolean>> = {
  '==': (a, b) => a === b,
  '!=': (a, b) => a !== b,
  '<': (a, b) => a < b,
  '>': (a, b) => a > b,
  '<=': (a, b) => a <= b,
  '>=': (a, b) => a >= b,
}
/** The accepted status codes for conditions that all have to hold: `[['==', 'any(200, 429)']]` → `['200', '429']`. */
function statuses(conditions: readonly (readonly (string | undefined)[])[]): readonly string[] {
  const all = Array.from({ length: 500 }, (_, index) => index + 100).filter((status) =>
    conditions.every(([operator = '', operand = '']) => {
      const holds = (figure: string): boolean => compare[operator]?.(status, Number(figure)) ?? false
      const figures = operand.replaceAll(/any\(|\)/g, '').split(',')
      return operator === '!=' ? figures.every(holds) : figures.some(holds)
    }),
  )
  const starts = all.filter((status) => !all.includes(status - 1))
  const ends = all.filter((status) => !all.includes(status + 1))
  return starts.map((from, index) => (from === ends[index] ? `${from}` : `${from}-${ends[index]}`))
}

export const gatus: ToolFormat = {
  title: 'gatus',
  recognizes: ({ endpoints }) => Array.isArray(endpoints),
  reads: ['endpoints'],
  drafts: ({ endpoints }) =>
    maps(endpoints).map((endpoint) => {
      const { name = endpoint['url'], url, dns, conditions = [], ...others } = endpoint
      const draft = new Draft('endpoint', name, endpoint)
      const scheme = /^(\w+):\/\//.exec(String(url))?.[1]
      if (isMap(dns))
        Object.assign(draft.main, { kind: 'dns', query: dns['query-name'], type: dns['query-type'], server: url })
      else {
        const main = schemes[scheme ?? ''] ?? 'unknown'
        if (typeof main === 'string') draft.decline('url', main)
        else Object.assign(draft.main, main(String(url)))
      }
      // The conditions last: what they become depends on the other settings.
      return draft.main['kind'] === undefined ? draft : draft.apply(rules, { ...others, conditions })
    }),
}
