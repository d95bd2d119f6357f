import { isMap, type Raw } from '../../base/settings/index.ts'
import type { Declined } from './declined.ts'
import { Draft, hostPort, pattern, type Rule, type SettingRules, type ToolFormat, texts, to } from './draft.ts'

/** A state that the kind demands by itself, or settings that demand the opposite. */
const state =
  (opposite: Raw | undefined): Rule =>
  (value, draft) => {
    if (typeof value !== 'boolean') return 'condition'
    if (!value && !opposite) return draft.disable('false', 'inverted')
    return void Object.assign(draft.main, value ? {} : opposite)
  }
/** A setting for values; matchers such as `{gt: 3}` are conditions that svc import does not know. */
const values =
  (setting: string, convert: (value: unknown) => unknown = texts): Rule =>
  (value, draft) =>
    isMap(value) ? 'condition' : draft.set(setting, convert(value))
const body: Rule = (value, draft) => {
  if (isMap(value)) return 'condition'
  for (const written of texts(value)) {
    const [, not, source, text = source] = /^(!?)(?:\/(.*)\/|(.*))$/s.exec(written) ?? []
    const expected = source === undefined ? text : pattern(source)
    draft.expect(source === undefined ? 'contains' : 'matches', not === '!' ? { not: expected } : expected)
  }
  return undefined
}
const lines = (value: unknown): readonly string[][] => texts(value).map((line) => line.split(/:\s*(.*)/s).slice(0, 2))

type Resource = { readonly main: (name: string) => Raw | Declined; readonly rules: SettingRules }
const timeout = to.timeout('ms')
/** For each resource: the first monitor by its name, and the rules of its attributes; or why there is none. */
const resources: Readonly<Record<string, Resource | Declined>> = {
  addr: {
    main: (name) => (name.startsWith('tcp://') ? { kind: 'tcp', ...hostPort(name) } : 'transport'),
    rules: { reachable: state({ state: 'closedOrFiltered' }), timeout, 'local-address': to.set('source') },
  },
  port: {
    main: (name) =>
      name.startsWith('tcp:') ? { kind: 'tcp', host: '127.0.0.1', port: Number(name.slice(4)) } : 'transport',
    rules: { listening: state({ state: 'closed' }), ip: 'address' },
  },
  process: { main: (executable) => ({ kind: 'process', executable }), rules: { running: state({ running: false }) } },
  service: { main: (service) => ({ kind: 'service', service }), rules: { running: state(undefined) } },
  command: {
    main: (line) => ({ kind: 'exec', command: line.split(' ')[0], args: line.split(' ').slice(1) }),
    rules: {
      exec: to.done,
      'exit-status': (value) => (value === 0 ? undefined : 'condition'),
      stdout: values('expect', (value) => texts(value)[0]),
      timeout,
    },
  },
  dns: {
    main: (query) => ({ kind: 'dns', query: query.replace(/^\w+:/, ''), type: /^(\w+):/.exec(query)?.[1] }),
    rules: { resolvable: state({ rcode: 'NXDOMAIN' }), addrs: values('expect'), server: to.set('server'), timeout },
  },
  file: {
    main: (path) => ({ kind: 'file-age', path, age: 'off' }),
    rules: {
      exists: state(undefined),
      'mode owner group contains contents size filetype md5 sha256 linked-to': 'file',
    },
  },
  mount: {
    main: () => ({}),
    rules: {
      exists: to.done,
      // The host block finds a file system that has become read-only.
      opts: (value) => (texts(value).join() === 'rw' ? undefined : 'condition'),
      usage: (value, { host }) => {
        const most = isMap(value) ? value['lt'] : undefined
        if (typeof most !== 'number') return 'condition'
        host['disk'] = { limit: `${100 - most}%` }
        return undefined
      },
    },
  },
  http: {
    main: (url) => ({ kind: 'http', url, redirects: 10 }),
    rules: {
      status: values('status'),
      method: to.method,
      'allow-insecure': to.whenTrue('verify', false),
      'no-follow-redirects': to.whenTrue('redirects', 0),
      timeout,
      body,
      username: to.set('username'),
      password: to.secret('password'),
      proxy: to.proxy,
      'request-body': to.set('body'),
      'request-headers': (value, draft, path) => to.headers(Object.fromEntries(lines(value)), draft, path),
      headers: (value, draft) => {
        if (isMap(value)) return 'condition'
        for (const [name, expected] of lines(value)) draft.expect('header', expected, name)
        return undefined
      },
      'ca-file': to.set('caFile'),
      'cert-file': to.set('clientCert'),
      'key-file': to.set('clientKey'),
    },
  },
  package: 'unknown',
  user: 'unknown',
  group: 'unknown',
  'kernel-param': 'unknown',
  interface: 'unknown',
  matching: 'condition',
  gossfile: 'unknown',
}

export const goss: ToolFormat = {
  title: 'goss',
  recognizes: (file) => Object.keys(file).some((key) => Object.hasOwn(resources, key) && isMap(file[key])),
  reads: Object.keys(resources),
  drafts: (file) =>
    Object.entries(resources).flatMap(([type, resource]) =>
      Object.entries(isMap(file[type]) ? file[type] : {}).map(([name, attributes]) => {
        const draft = new Draft(type, name, attributes)
        const main =
          typeof resource === 'string' ? resource : resource.main(texts(draft.entry['exec'] ?? name)[0] ?? name)
        if (typeof main === 'string' || typeof resource === 'string') {
          draft.decline(type, typeof main === 'string' ? main : 'unknown')
          return draft
        }
        Object.assign(draft.main, main)
        if (type === 'mount') draft.host['disks'] = [name]
        if (type === 'command') draft.disable('command', 'command')
        if (type === 'dns') draft.decline('dns', 'name server')
        return draft.apply({ skip: to.disable('disabled'), ...resource.rules })
      }),
    ),
}
