import type { Raw } from '../../base/settings/index.ts'
import { parseJsonPath } from '../../checks/assert/document.ts'
import type { Declined } from './declined.ts'
import {
  Draft,
  hostPort,
  isUnset,
  literal,
  maps,
  milliseconds,
  type Rule,
  type SettingRules,
  type ToolFormat,
  tag,
  texts,
  to,
} from './draft.ts'

/** The first monitor for a type, or why there is none. */
const types: Readonly<Record<string, Declined | ((raw: Raw) => Raw)>> = {
  http: ({ url }) => ({ kind: 'http', url }),
  keyword: ({ url }) => ({ kind: 'http', url }),
  'json-query': ({ url }) => ({ kind: 'http', url }),
  port: ({ hostname, port }) => ({ kind: 'tcp', host: hostname, port }),
  ping: ({ hostname }) => ({ kind: 'ping', host: hostname }),
  dns: ({ hostname }) => ({ kind: 'dns', query: hostname }),
  'grpc-keyword': ({ grpcUrl }) => ({ kind: 'grpc', ...hostPort(grpcUrl) }),
  postgres: () => ({ kind: 'postgres' }),
  mysql: () => ({ kind: 'mysql' }),
  mongodb: () => ({ kind: 'mongo' }),
  redis: () => ({ kind: 'redis' }),
  group: 'group',
  push: 'push',
  docker: 'docker',
  mqtt: 'mqtt',
  'kafka-producer': 'kafka',
  'real-browser': 'browser',
  snmp: 'snmp',
  'websocket-upgrade': 'websocket',
  'tailscale-ping': 'transport',
  steam: 'transport',
  gamedig: 'transport',
  radius: 'transport',
}

const jsonQuery: Rule = (value, draft) => {
  const { jsonPath: path = '$', jsonPathOperator: operator = '==' } = draft.entry
  const at = String(path)
    .replace(/^(?!\$)(?=\[)/, '$$')
    .replace(/^(?!\$)/, '$.')
  // JSONata, of which only names and indexes mean the same in svc.
  const isPath = /^[\p{L}\p{N}_.$[\]]*$/u.test(at) && parseJsonPath(at) !== undefined
  if (!isPath || operator === 'contains') return draft.disable('jsonPath', 'condition')
  return draft.expect('json', operator === '==' ? literal(value) : `${String(operator)} ${String(value)}`, at)
}

const rules: SettingRules = {
  'name type url hostname port grpcUrl parent jsonPath jsonPathOperator invertKeyword retryInterval': to.done,
  'oauth_client_id oauth_client_secret oauth_scopes oauth_auth_method active': to.done,
  interval: to.every('s'),
  timeout: to.timeout('s'),
  maxretries: (value, draft) => {
    const { interval = 60, retryInterval = interval } = draft.entry
    return to.confirm(draft, Number(value) + 1, milliseconds(retryInterval, 's'))
  },
  method: (value, draft) => (draft.main['kind'] === 'http' ? to.method(value, draft) : undefined),
  body: to.set('body'),
  headers: (value, draft, path) => {
    try {
      return to.headers(typeof value === 'string' ? JSON.parse(value) : value, draft, path)
    } catch {
      return draft.disable(path, 'template')
    }
  },
  keyword: (value, draft) =>
    draft.main['kind'] === 'http'
      ? draft.expect('contains', draft.entry['invertKeyword'] ? { not: value } : value)
      : draft.disable('keyword', 'condition'),
  expectedValue: jsonQuery,
  maxredirects: to.setFor('http', 'redirects', (value) => Math.min(10, Number(value))),
  accepted_statuscodes: to.setFor('http', 'status', texts),
  ignoreTls: to.whenTrue('verify', false),
  expiryNotification: (_, { main, others }) => {
    const url = URL.parse(String(main['url']))
    if (url?.protocol === 'https:') others.push({ kind: 'tls', ...hostPort(url.host, 443) })
    return undefined
  },
  domainExpiryNotification: (value, draft) => (value ? draft.domain(draft.main) : undefined),
  upsideDown: (_, draft) =>
    draft.main['kind'] === 'tcp' ? draft.set('state', 'closedOrFiltered') : draft.disable('upsideDown', 'inverted'),
  tags: (value, draft) => void draft.tags.push(...maps(value).map(({ name }) => tag(name))),
  'proxyId tlsCa tlsCert tlsKey': to.disable('secret'),
  notificationIDList: 'alert',
  dns_resolve_type: to.setFor('dns', 'type'),
  dns_resolve_server: to.setFor('dns', 'server'),
  authMethod: (value, draft) =>
    /^(?:basic|oauth2-cc|mtls)$/.test(String(value))
      ? undefined
      : draft.disable(`authMethod: ${String(value)}`, 'sign-in'),
  basic_auth_user: to.set('username'),
  basic_auth_pass: to.secret('password'),
  oauth_token_url: (url, draft) => {
    const { oauth_client_id: id, oauth_client_secret: secret, oauth_scopes: scopes } = draft.entry
    return to.oauth2(draft, [url, id, secret, scopes])
  },
  grpcEnableTls: to.whenTrue('tls', true),
  databaseConnectionString: (value, draft) => {
    const url = URL.parse(String(value))
    if (!url) return draft.disable('databaseConnectionString', 'secret')
    if (url.password !== '') draft.set('password', draft.secret('password', ''))
    url.password = ''
    return draft.set('url', url.href)
  },
}

export const uptimeKuma: ToolFormat = {
  title: 'Uptime Kuma',
  recognizes: ({ monitorList }) => Array.isArray(monitorList),
  reads: ['monitorList'],
  drafts: ({ monitorList }) => {
    const groups = new Map(maps(monitorList).flatMap(({ id, name, type }) => (type === 'group' ? [[id, name]] : [])))
    return maps(monitorList).map((raw) => {
      const draft = new Draft('monitor', raw['name'], raw)
      const type = String(raw['type'])
      const main = Object.hasOwn(types, type) ? (types[type] ?? 'unknown') : 'unknown'
      if (typeof main === 'string') {
        draft.decline(`type ${type}`, main)
        return draft
      }
      Object.assign(draft.main, main(raw))
      const group = isUnset(raw['parent']) ? undefined : groups.get(raw['parent'])
      if (group !== undefined) draft.tags.push(tag(group))
      if (raw['active'] === false || raw['active'] === 0) draft.disable('active', 'disabled')
      return draft.apply(rules, raw, '', (value) => isUnset(value) || value === false)
    })
  },
}
