import { isMap, type Raw } from '../../base/settings/index.ts'
import { Draft, maps, pattern, type SettingRules, type ToolFormat, texts, to } from './draft.ts'

const bodyRule =
  (isNegated: boolean) =>
  (value: unknown, draft: Draft): undefined => {
    for (const one of texts(value)) draft.expect('matches', isNegated ? { not: pattern(one) } : pattern(one))
  }
/** Headers that must or must not match. `.+` in one that may be missing means that it is missing. */
const headerRule =
  (isNegated: boolean) =>
  (value: unknown, draft: Draft): undefined => {
    for (const { header, regexp, allow_missing: mayLack } of maps(value)) {
      const expected = mayLack === true && /^\^?\.[+*]\$?$/.test(String(regexp)) ? 'present' : pattern(regexp)
      if (!isNegated && mayLack === true) draft.decline(`${String(header)}: allow_missing`, 'condition')
      draft.expect('header', isNegated ? { not: expected } : expected, String(header))
    }
  }

/** SettingRules of the settings that stand under the name of a prober. */
const rules: SettingRules = {
  preferred_ip_protocol: (value, draft) => {
    const { prober } = draft.entry
    const own = draft.entry[String(prober)]
    if (!isMap(own) || own['ip_protocol_fallback'] !== false) return 'family'
    return draft.set('family', value === 'ip4' ? 'ipv4' : 'ipv6')
  },
  ip_protocol_fallback: to.done,
  source_ip_address: to.set('source'),
  'tls_config.insecure_skip_verify': to.whenTrue('verify', false),
  'tls_config.ca_file': to.set('caFile'),
  'tls_config.cert_file': to.set('clientCert'),
  'tls_config.key_file': to.set('clientKey'),
  'tls_config.server_name': to.set('servername'),
  method: to.method,
  body: to.set('body'),
  headers: to.headers,
  'basic_auth.username': to.set('username'),
  'basic_auth.password': to.secret('password'),
  'basic_auth.password_file': to.file('password'),
  'bearer_token authorization.credentials': to.secret('token'),
  'bearer_token_file authorization.credentials_file': to.file('token'),
  'authorization.type': (value, draft) => (value === 'Bearer' ? undefined : draft.disable('authorization', 'sign-in')),
  oauth2: (it, draft) => {
    const { token_url: url, client_id: id, client_secret: secret, scopes } = isMap(it) ? it : {}
    return to.oauth2(draft, [url, id, secret, scopes])
  },
  valid_status_codes: to.set('status', texts),
  valid_http_versions: (value) => (texts(value).includes('HTTP/1.1') ? undefined : 'http2'),
  'enable_http2 enable_http3': 'http2',
  proxy_url: to.proxy,
  follow_redirects: to.set('redirects', (value) => (value === false ? 0 : undefined)),
  no_follow_redirects: to.whenTrue('redirects', 0),
  fail_if_body_matches_regexp: bodyRule(true),
  fail_if_body_not_matches_regexp: bodyRule(false),
  fail_if_header_matches: headerRule(true),
  fail_if_header_not_matches: headerRule(false),
  'fail_if_ssl fail_if_not_ssl validate_answer_rrs': 'condition',
  tls: to.whenTrue('tls', true),
  query_response: to.set('dialogue', dialogue),
  query_name: to.set('query'),
  query_type: to.set('type'),
  transport_protocol: to.set('transport', (value) => (value === 'tcp' ? value : undefined)),
  valid_rcodes: (value, draft) => {
    const [rcode, ...more] = texts(value)
    if (more.length > 0) return 'condition'
    return rcode === 'NOERROR' ? undefined : draft.set('rcode', rcode)
  },
  'validate_authority_rrs validate_additional_rrs': 'section',
  service: to.set('services', (name) => [name]),
}

/** The steps of a dialogue. There, each expects first and sends then, with `${1}` for a group of the pattern. */
function dialogue(value: unknown): readonly Raw[] {
  const steps: Record<string, unknown>[] = []
  for (const { expect, send, starttls } of maps(value)) {
    const last = steps.at(-1)
    if (expect !== undefined) {
      if (last?.['send'] !== undefined && last['expect'] === undefined) last['expect'] = pattern(expect)
      else steps.push({ expect: pattern(expect) })
    }
    const question = steps.at(-1)
    if (send !== undefined) {
      const text = texts(send)[0] ?? ''
      const groups = texts(question?.['expect'] ?? '')[0]?.match(/(?<!\\)\((?!\?)/g) ?? []
      if (question && /\$\{\d\}/.test(text)) question['capture'] = groups.map((_, index) => `group${index + 1}`)
      steps.push({ send: `${text.replaceAll(/(?<=\$\{)(?=\d\})/g, 'group')}\r\n` })
    }
    if (starttls === true) steps.push({ starttls })
  }
  return steps
}

/** The first monitor for a prober, and what the target of a probe is: a module has none, so that it becomes a profile. */
const probers: Readonly<Record<string, { readonly main: Raw; readonly target: Raw }>> = {
  http: { main: { kind: 'http', redirects: 10 }, target: { url: 'url' } },
  tcp: { main: { kind: 'tcp' }, target: { host: 'text', port: 'integer' } },
  dns: { main: { kind: 'dns' }, target: { server: 'text' } },
  icmp: { main: { kind: 'ping' }, target: { host: 'text' } },
  grpc: { main: { kind: 'grpc' }, target: { host: 'text', port: 'integer' } },
}

export const blackbox: ToolFormat = {
  title: 'blackbox_exporter',
  recognizes: ({ modules }) => isMap(modules),
  reads: ['modules'],
  drafts: ({ modules }) =>
    Object.entries(isMap(modules) ? modules : {}).map(([name, module]) => {
      const draft = new Draft('module', name, module)
      const { prober, timeout, ...settings } = draft.entry
      const of = String(prober)
      const declared = Object.hasOwn(probers, of) ? probers[of] : undefined
      if (!declared) {
        draft.decline(`prober ${of}`, 'unknown')
        return draft
      }
      draft.parameters = declared.target
      Object.assign(
        draft.main,
        declared.main,
        Object.fromEntries(Object.keys(declared.target).map((key) => [key, `\${${key}}`])),
      )
      const { [of]: own, ...others } = settings
      return draft.apply({ timeout: to.timeout('s') }, { timeout, ...others }).apply(rules, isMap(own) ? own : {})
    }),
}
