import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { declined, hideSecrets } from '../../src/core/config/import/declined.ts'
import { type Imported, importFile } from '../../src/core/config/import/index.ts'
import { loadConfig } from '../../src/core/config/index.ts'
import { read } from '../support/suite/repository.ts'
import { faultOf, file, folder, here } from './given.ts'

const imported = async (text: string, from?: string): Promise<Imported> => {
  const home = await folder()
  return await importFile({ path: 'other.yaml', text, from, head: ['head'] }, async (yaml) => {
    const path = await file(`${home}/svc.yaml`, yaml)
    return await loadConfig({ ...here({}, home), path, tolerant: true })
  })
}
const fixture = (name: string): string => readFileSync(new URL(`imports/${name}`, import.meta.url), 'utf8')

/** The outcome for each entry of the files, in the order of the files. A `#` is in front of monitors that are comments. */
const expected = {
  'gatus.yaml': {
    'endpoint "shop"': 'http shop, tls shop, domain shop',
    'endpoint "no banner"': 'http no banner',
    'endpoint "game"': '',
    'endpoint "mail"': 'tls mail',
    'endpoint "api with a certificate of its own"': 'http api with a certificate of its own',
    'endpoint "through the proxy"': 'http through the proxy',
    'endpoint "with a token"': 'http with a token',
    'endpoint "gone for good"': 'dns gone for good',
    'endpoint "socket"': '',
    'endpoint "v4 only"': 'ping v4 only',
  },
  'blackbox.yml': {
    'module "imap_starttls"': 'profile imap_starttls',
    'module "irc"': 'profile irc',
    'module "http_not"': 'profile http_not',
    'module "dns_tcp"': 'profile dns_tcp',
  },
  'goss.yaml': {
    'addr "tcp://127.0.0.1:5432"': 'tcp tcp://127.0.0.1:5432',
    'addr "tcp://127.0.0.1:9"': 'tcp tcp://127.0.0.1:9',
    'port "tcp:22"': 'tcp tcp:22',
    'port "tcp:23"': 'tcp tcp:23',
    'process "sshd"': 'process sshd',
    'process "telnetd"': 'process telnetd',
    'command "systemctl is-system-running"': 'exec systemctl is-system-running',
    'dns "localhost"': 'dns localhost',
    'file "/etc/passwd"': 'file-age /etc/passwd',
    'mount "/"': 'host',
    'http "https://127.0.0.1:8443/"': 'http https://127.0.0.1:8443/, http https://127.0.0.1:8443/ 2',
  },
  'uptime-kuma.json': {
    'monitor "no error on the front page"': 'http no error on the front page',
    'monitor "queue"': 'http queue',
    'monitor "broker"': '',
    'monitor "mx"': 'dns mx',
    'monitor "must be closed"': 'tcp must be closed',
    'monitor "with NTLM"': 'http with NTLM',
    'monitor "shop"': '',
  },
} as const
const files = Object.keys(expected) as (keyof typeof expected)[]

const reasons: readonly string[] = Object.values(declined)

describe('svc import', () => {
  test.each(files)(
    'C22 of %s says what each entry becomes, and declines nothing that the page does not name',
    async (name) => {
      const { entries } = await imported(fixture(name))
      expect(Object.fromEntries(entries.map(({ entry, monitors }) => [entry, monitors.join(', ')]))).toEqual(
        expected[name],
      )
      const notes = entries.flatMap((entry) => entry.notes)
      expect(notes.filter((note) => !reasons.some((reason) => note.endsWith(`: ${reason}`)))).toEqual([])
      // Whatever becomes no monitor has a line.
      expect(entries.filter((entry) => entry.monitors.length === 0 && entry.notes.length === 0)).toEqual([])
    },
  )

  test('C22 everything else in the four files is expressed', async () => {
    const all = (await Promise.all(files.map(async (name) => await imported(fixture(name))))).flatMap(
      (one) => one.entries,
    )
    const refused = all.filter(
      ({ problem = '' }) => problem !== '' && !reasons.some((reason) => problem.endsWith(reason)),
    )
    expect(refused.map(({ entry, problem }) => [entry, problem])).toEqual([])
  })

  test('docs/import.md has every reason, in these words', () => {
    const page = read('docs/import.md').replaceAll(/\s+/g, ' ')
    expect(reasons.filter((reason) => !page.includes(`| ${reason} |`))).toEqual([])
  })

  test('writes the settings of a monitor as svc.yaml has them', async () => {
    const { yaml } = await imported(fixture('gatus.yaml'))
    expect(yaml).toContain(`    - kind: http
      name: shop
      url: https://shop.example.test/health
      redirects: 10
      every: 30s
      confirm: 1m
      status:
        - "200"
        - "429"
      latency:
        warn: off
        limit: 500ms
      json:
        $.checks['queue:depth'][0].value: < 100
    - kind: tls
      name: shop
      host: shop.example.test
      port: 443
      expiry:
        warn: off
        limit: 10d
    - kind: domain
      name: shop
      domain: example.test
      expires:
        warn: off
        limit: 30d
`)
  })
})

/** An endpoint of gatus with some settings. */
const endpoint = (settings: object): string =>
  JSON.stringify({ endpoints: [{ name: 'shop', url: 'https://shop.example.test/', ...settings }] })
const monitor = (settings: object): string =>
  JSON.stringify({ monitorList: [{ type: 'http', name: 'shop', url: 'https://shop.example.test/', ...settings }] })

describe('what may be a secret', () => {
  const secret = 'Hunter2Hunter2Hunter2'
  const places: readonly (readonly [string, string])[] = [
    ['a header', endpoint({ headers: { 'X-Api-Key': secret } })],
    ['a token', endpoint({ headers: { Authorization: `Bearer ${secret}` } })],
    ['a second header', endpoint({ headers: { Cookie: secret, 'X-Auth': secret } })],
    ['a user in a URL', endpoint({ url: `https://me:${secret}@shop.example.test/` })],
    ['a parameter of a URL', endpoint({ url: `https://shop.example.test/?token=${secret}` })],
    ['a body', endpoint({ method: 'POST', body: `{"password": "${secret}"}` })],
    ['an expected value', endpoint({ conditions: [`[BODY].token == ${secret}`, `[BODY].api_key == pat(${secret})`] })],
    [
      'OAuth 2.0',
      endpoint({
        client: { oauth2: { 'token-url': 'https://id.example.test/', 'client-id': 'a', 'client-secret': secret } },
      }),
    ],
    ['a proxy', endpoint({ client: { 'proxy-url': `http://me:${secret}@proxy.example.test:3128` } })],
    ['a setting without a counterpart', endpoint({ ssh: { username: 'me', password: secret } })],
    ['an unknown setting', endpoint({ invented: { password: secret } })],
    ['a section', JSON.stringify({ endpoints: [], alerting: { slack: { 'webhook-url': secret } } })],
    ['a name', endpoint({ name: `shop ?token=${secret}` })],
    ['a password of Uptime Kuma', monitor({ authMethod: 'basic', basic_auth_user: 'me', basic_auth_pass: secret })],
    ['headers of Uptime Kuma', monitor({ headers: JSON.stringify({ 'X-Token': secret }) })],
    [
      'a database',
      monitor({ type: 'postgres', databaseConnectionString: `postgres://me:${secret}@db.example.test/a` }),
    ],
    ['a key of Uptime Kuma', monitor({ authMethod: 'mtls', tlsKey: secret, tlsCert: secret })],
    [
      'a password of blackbox_exporter',
      JSON.stringify({
        modules: { a: { prober: 'http', http: { basic_auth: { username: 'me', password: secret } } } },
      }),
    ],
    [
      'a dialogue',
      JSON.stringify({ modules: { a: { prober: 'tcp', tcp: { query_response: [{ send: `PASS ${secret}` }] } } } }),
    ],
    ['a command', JSON.stringify({ command: { [`check --password ${secret}`]: { 'exit-status': 0 } } })],
    ['a short option of a command', JSON.stringify({ command: { [`mysql -p${secret}`]: { 'exit-status': 0 } } })],
    [
      'a header of goss',
      JSON.stringify({
        http: { 'https://shop.example.test/': { 'request-headers': [`Authorization: Basic ${secret}`] } },
      }),
    ],
  ]
  test.each(places)('C22 is written and printed nowhere: %s', async (_, text) => {
    const result = await imported(text)
    expect(JSON.stringify(result)).not.toMatch(/hunter/i)
  })

  test.each(['short', 'p4ss', 'correct horse'])(
    'is hidden where its setting is for secrets, whatever it looks like: %s',
    async (value) => {
      const { yaml, secrets } = await imported(
        monitor({ authMethod: 'basic', basic_auth_user: 'me', basic_auth_pass: value }),
      )
      expect(yaml).not.toContain(value)
      expect(yaml).toContain('      password:\n        env: SHOP_PASSWORD\n')
      expect(secrets).toEqual(['SHOP_PASSWORD: password of shop'])
      expect(yaml.trimEnd().split('\n').at(-1)).toBe('#   SHOP_PASSWORD: password of shop')
    },
  )

  test('has the name of its variable in gatus, and a name of its own for each other secret', async () => {
    const headers = { Authorization: 'Bearer a' }
    const all = ['shop', 'shop', 'Shop'].map((name) => ({ name, url: 'https://shop.example.test/', headers }))
    const { secrets } = await imported(
      JSON.stringify({ endpoints: [...all, { ...all[0], headers: { Cookie: `\${SHARED}` } }] }),
    )
    expect(secrets.map((line) => line.split(':')[0])).toEqual(['SHOP_TOKEN', 'SHOP_TOKEN_2', 'SHOP_TOKEN_3', 'SHARED'])
  })

  test.each([
    'the session has ended',
    'https://shop.example.test/orders/2024-11',
    '/^ok$/',
    'signature of the contract',
  ])('is not seen in a usual text: %s', (text) => expect(hideSecrets(text)).toBe(text))
})

/** The entry of the only monitor, as YAML. */
const settingsOf = async (text: string): Promise<string> =>
  (await imported(text)).yaml.split(/types:\n {2}App:\n/)[1] ?? ''

describe('conditions of gatus', () => {
  test.each([
    ['https://shop.example.org/a', 'example.org'],
    ['https://example.org/', 'example.org'],
    ['https://www.shop.co.uk/', 'shop.co.uk'],
    ['tcp://a.b.example.org:25', 'example.org'],
    ['icmp://www.uni.ac.at', 'uni.ac.at'],
  ])('the expiry of the domain of %s is that of %s', async (url, domain) => {
    const yaml = await settingsOf(endpoint({ url, conditions: ['[DOMAIN_EXPIRATION] > 36h'] }))
    expect(yaml).toContain(`      domain: ${domain}\n      expires:\n        warn: off\n        limit: 2d\n`)
  })

  test.each([
    [['[STATUS] < 300'], ['100-299']],
    [['[STATUS] == any(200, 429)'], ['200', '429']],
    [
      ['[STATUS] >= 200', '[STATUS] <= 299', '[STATUS] != 204'],
      ['200-203', '205-299'],
    ],
    [['[STATUS] != any(404, 500)'], ['100-403', '405-499', '501-599']],
    [[], ['100-599']],
  ])('%j accept the status codes %j', async (conditions, accepted) => {
    const yaml = await settingsOf(endpoint({ conditions: [...conditions, '[RESPONSE_TIME] < 1s'] }))
    expect(yaml).toContain(
      `      status:\n${accepted.map((one) => `        - ${/^\d+$/.test(one) ? `"${one}"` : one}\n`).join('')}      latency`,
    )
  })

  test.each([
    ['[BODY].a == 1', '$.a: "1"'],
    ['[BODY].a == /x/', '$.a: = /x/'],
    ['[BODY].a != b', '$.a: "!= b"'],
    ['[BODY].a-b.c >= 3', '$[\'a-b\'].c: ">= 3"'],
    ['[BODY].a == pat(x*)', '$.a: /^x.*$/s'],
    ['[BODY].a == any(x, y.z)', '$.a: /^(?:x|y\\.z)$/'],
    ['len([BODY].a) < 5', 'count($.a[*]): < 5'],
    ['has([BODY].a) == true', 'count($.a): ">= 1"'],
    ['has([BODY].a) == false', 'count($.a): "0"'],
  ])('%s is %s', async (condition, written) => {
    expect(await settingsOf(endpoint({ conditions: [condition] }))).toContain(`      json:\n        ${written}\n`)
  })

  test.each(['[BODY].a ~ 1', '200 == [STATUS]', 'len([BODY]) > 5', '[CONTEXT].a == 1', '[RESPONSE_TIME] > 5'])(
    'C22 %s has a line, because it is not expressed',
    async (condition) => {
      const { entries } = await imported(endpoint({ conditions: [condition] }))
      expect(entries[0]?.notes).toEqual([`not expressed: ${condition}: ${declined.condition}`])
    },
  )
})

describe('a module of blackbox_exporter', () => {
  test('becomes a profile that monitors can use, with all that it expects', async () => {
    const http = {
      ...{ valid_status_codes: [200], headers: { Accept: 'text/html' }, basic_auth: { username: 'me', password: 'x' } },
      fail_if_body_not_matches_regexp: ['(?i)welcome', 'b/c'],
    }
    const modules = {
      web: { prober: 'http', timeout: '5s', http },
      host: { prober: 'icmp' },
      port: { prober: 'tcp' },
      shop: { prober: 'grpc', grpc: { service: 'shop.v1', tls: true } },
    }
    const { yaml, entries } = await imported(JSON.stringify({ modules }))
    expect(entries.map(({ problem, notes }) => [problem, notes])).toEqual(entries.map(() => [undefined, []]))
    const used = yaml.replace(
      'types: {}\n',
      `types:
  App:
    - {profile: web, name: a, url: 'https://a.test/'}
    - {profile: host, name: b, host: b.test}
    - {profile: port, name: c, host: c.test, port: 1}
    - {profile: shop, name: d, host: d.test, port: 2}
`,
    )
    const home = await folder()
    const path = await file(`${home}/svc.yaml`, used)
    const { types } = await loadConfig({ ...here({}, home), path })
    const names = types.App?.monitors.map(({ name }) => name)
    expect(names).toEqual(['http a web', 'http a web 2', 'ping b host', 'tcp c port', 'grpc d shop'])
    const [first, second] = types.App?.monitors.map(({ settings }) => settings) ?? []
    expect([first, second]).toMatchObject([
      { matches: '/welcome/i', status: ['200'], username: 'me', redirects: 10 },
      { matches: '/b\\/c/', status: ['200'], username: 'me', redirects: 10 },
    ])
  })
})

describe('a file', () => {
  test('C22 with a setting that nobody knows gets a line for it, at any depth, and for a section', async () => {
    const text = JSON.stringify({
      surprise: 1,
      endpoints: [{ name: 'a', url: 'tcp://a:1', one: 1, client: { two: { three: 3 } } }],
    })
    const { entries, yaml } = await imported(text)
    expect(entries[0]?.notes).toEqual([`not expressed: one, client.two.three: ${declined.unknown}`])
    expect(yaml).toContain('# Not expressed: the sections surprise\n')
  })

  test('with two monitors of a name gets two names', async () => {
    const { entries } = await imported(
      JSON.stringify({ monitorList: [1, 2].map(() => ({ type: 'ping', name: 'a', hostname: 'a' })) }),
    )
    expect(entries.map(({ monitors }) => monitors)).toEqual([['ping a'], ['ping a 2']])
  })

  test('with a text that needs its template rendered becomes a comment', async () => {
    const { entries } = await imported(endpoint({ url: `https://\${HOST}/` }))
    expect(entries[0]?.problem).toBe(`url: ${declined.template}`)
  })

  test.each([
    ['a: 1', undefined, 'Usage'],
    ['endpoints: []', 'goss', 'Usage'],
    ['endpoints: [', undefined, 'Local'],
    ['port: {{ .Env.PORT }}', undefined, 'Local'],
  ])('that is not one of a known tool is refused with the way out: %s', async (text, from, fault) => {
    const refusal = await faultOf(imported(text, from))
    expect([refusal.fault, (refusal.details.hints ?? []).length > 0]).toEqual([fault, true])
  })
})
