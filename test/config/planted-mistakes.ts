// biome-ignore-all lint/suspicious/noTemplateCurlyInString: `sites` are pieces of source
/**
 * The mistakes of svc.yaml that a run would end in, each with the faults in the source that it would cause. `sites` are
 * `FILE: BEGINNING`, as `runTimeFaults` of `run-time-faults.ts` finds them.
 */
export type Planted = {
  readonly sites: readonly string[]
  /** The entry of a monitor of App. */
  readonly entry: string
  /** The setting, as messages name it, and what follows it. */
  readonly says: readonly [setting: string, message: string | RegExp]
  /** A warning: the file or variable may still come. Default: a mistake. */
  readonly warns?: true
  readonly env?: Readonly<Record<string, string>>
  /** Files beside svc.yaml, by name. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>
}

const http = (more: string): string => `{kind: http, url: 'http://127.0.0.1/', ${more}}`
const steps = (more: string): string => `{kind: http-steps, url: 'http://127.0.0.1/app', steps: [{name: a, ${more}}]}`
const sql = (kind: string, query: string): string => {
  const at = kind === 'sqlite' ? 'path: /srv/a.db' : `url: '${kind}://monitor@127.0.0.1/app'`
  return `{kind: ${kind}, ${at}, queries: [{name: q, sql: ${JSON.stringify(query)}, rows: 3}]}`
}

const jsonSites = [
  'checks/assert/content.ts: `${address}: ${first}${others}`, { address, de',
  'checks/kinds/http/checks.ts: `${address}: ${read.problem}`, { deployment: t',
]
const header = "base/net/http/call.ts: 'a header of this monitor contains a character"
const secret = 'base/settings/secret.ts: `the secret ${origin} cannot be read: ${why}`)'
const certificates = [
  'base/net/certificates.ts: `caFile ${path} ${fileProblem(error)}`)',
  'base/net/certificates.ts: `caFile ${path} contains no PEM certificate`)',
]
const several = [
  'checks/database/sql.ts: problem)',
  "checks/kinds/sqlite/probe.ts: 'the query failed: sql contains more than one",
]
const target = 'checks/database/target.ts: `the setting ${setting} ${what}`)'
const unjudged = [
  'checks/database/queries.ts: error.message)',
  "checks/assert/answer.ts: `the answer of ${address} ${problem ?? ''}`)",
  'checks/kinds/http-steps/sequence.ts: `${summary}${waiting}: cannot be evaluated: ${',
  'checks/assert/measure.ts: `${address}: ${name}: ${why}`, more),',
]
const status = [
  'checks/kinds/http/checks.ts: `${text}, which cannot be evaluated: ${(error',
  'checks/kinds/http/links.ts: `${text}, which cannot be evaluated: ${(error',
]
const dnsName = [
  "base/net/dns-query.ts: 'the name to look up is not a valid DNS name')",
  'checks/kinds/dns.ts: `${name} is not a valid DNS name`, [code])',
]
const notPath = 'is not a JSON path such as $.a.b[0].c: '
const oneStatement = 'query "q": sql contains more than one statement: write each as a query of its own'

export const planted: readonly Planted[] = [
  // Paths
  {
    sites: jsonSites,
    entry: http("json: {'$..status': ok}"),
    says: ['json.$..status', `${notPath}svc does not search for a name (..): write the whole path`],
  },
  { sites: jsonSites, entry: http('json: {state: ok}'), says: ['json.state', `${notPath}write $.state`] },
  {
    sites: jsonSites,
    entry: http("json: {'$.a[?(@.b)]': ok}"),
    says: ['json.$.a[?(@.b)]', `${notPath}svc does not filter lists: use measure with where`],
  },
  {
    sites: jsonSites,
    entry: http("json: {'$.a[0:2]': ok}"),
    says: ['json.$.a[0:2]', `${notPath}svc takes no part of a list: write one index, or [*] for each element`],
  },
  {
    sites: jsonSites,
    entry: http("json: {'$.a[-1]': ok}"),
    says: ['json.$.a[-1]', `${notPath}svc counts from the first element of a list, which is [0]`],
  },
  {
    sites: jsonSites,
    entry: http("json: {'$.a.0': ok}"),
    says: ['json.$.a.0', `${notPath}write [0] for an element of a list, or ['0'] for a name`],
  },
  {
    sites: jsonSites,
    entry: http("json: {'$.a/b': ok}"),
    says: ['json.$.a/b', `${notPath}write a name with other characters like ['a.b']`],
  },
  {
    sites: jsonSites,
    entry: http("version: {json: 'build version', expected: '1'}"),
    says: ['version.json', `${notPath}write $.build version`],
  },
  {
    sites: jsonSites,
    entry: http("version: {json: '$.a[*]', expected: '1'}"),
    says: ['version.json', 'selects several values or a count: name one value'],
  },
  {
    sites: jsonSites,
    entry: http("links: [{name: l, path: '$.a', json: {b: ok}}]"),
    says: ['links[0].json.b', `${notPath}write $.b`],
  },
  { sites: jsonSites, entry: http('xml: {a: ok}'), says: ['xml.a', 'is not a path such as /VAST/Ad[0]/@id'] },
  {
    sites: jsonSites,
    entry: steps('path: /, expect: {a: ok}'),
    says: ['steps[0].expect.a', /^is neither a JSON path .*: write \$\.a$/],
  },
  {
    sites: ['checks/kinds/deployment.ts: `${key} is not a path such as build.version`)'],
    entry: "{kind: deployment, versionFile: /srv/v.json, versionKey: '$..a', expected: '1'}",
    says: ['versionKey', 'is not a path such as build.version'],
  },
  // Expectations
  {
    sites: jsonSites,
    entry: http("json: {'$.status': '!= /pass/'}"),
    says: ['json.$.status', /^cannot be judged: != \/pass\/ compares with this text, not with the pattern: write /],
  },
  {
    sites: jsonSites,
    entry: http("json: {'$.n': '> many'}"),
    says: ['json.$.n', /^cannot be judged: > many is not a comparison with a number/],
  },
  {
    sites: jsonSites,
    entry: http("header: {Server: '/a(/'}"),
    says: ['header.Server', /^cannot be judged: .* is not a regular expression/],
  },
  {
    sites: unjudged,
    entry: http("json: {'$.a': '/^(a+)\\1$/'}"),
    says: ['json.$.a', /^is matched by backtracking/],
    warns: true,
  },
  { sites: status, entry: http('status: [2x]'), says: ['status[0]', /^is "2x", which no answer has/] },
  // Headers
  {
    sites: [header],
    entry: http("headers: {'X Trace': one}"),
    says: ['headers.X Trace', 'is not the name of a header: write letters, digits and -, without " "'],
  },
  {
    sites: [header],
    entry: http('headers: {X-Trace: "one\\ntwo"}'),
    says: [
      'headers.X-Trace',
      'contains "\\n", which the value of a header cannot: write it on one line, in Latin letters',
    ],
  },
  {
    sites: [header],
    entry: http('token: {env: T}, tokenHeader: X Key'),
    says: ['tokenHeader', /^is not the name of a header/],
    env: { T: 'x' },
  },
  {
    sites: [header, "checks/kinds/grpc/index.ts: 'the token contains a character that a header"],
    entry: '{kind: grpc, host: h, port: 1, tls: true, token: {env: T}}',
    env: { T: 'a\nb' },
    warns: true,
    says: [
      'token',
      'names the variable T, whose value has a character that a header cannot contain: checks that need it will fail',
    ],
  },
  {
    sites: [header],
    entry: http('token: {file: t}'),
    files: { t: 'a\nb' },
    warns: true,
    says: [
      'token',
      'names the file t, whose value has a character that a header cannot contain: checks that need it will fail',
    ],
  },
  // Steps
  {
    sites: ["checks/kinds/http-steps/request.ts: 'the path of this step leads away from url: no"],
    entry: steps('path: /../x'),
    says: ['', 'step "a" cannot be sent: the path of this step leads away from url'],
  },
  {
    sites: ["checks/kinds/http-steps/request.ts: 'a captured value leads out of its path: nothi"],
    entry: `{kind: http-steps, url: 'http://127.0.0.1/', values: {v: '../x'}, steps: [{name: a, path: '/\${v}'}]}`,
    says: ['', 'step "a" cannot be sent: a captured value leads out of its path'],
  },
  {
    sites: ['checks/kinds/http-steps/request.ts: `a value for the header ${name} contains a cha'],
    entry: `{kind: http-steps, url: 'http://127.0.0.1/', values: {v: "a\\nb"}, steps: [{name: a, path: /, headers: {X-V: '\${v}'}}]}`,
    says: ['', /^step "a" cannot be sent: a value for the header X-V contains a character/],
  },
  {
    sites: ['checks/kinds/http-steps/values.ts: `\\${${name}} has no value`)'],
    entry: steps("path: '/${nobody}'"),
    says: ['', /^step "a" .*nobody/],
  },
  // Names
  {
    sites: dnsName,
    entry: "{kind: dns, query: 'a..b'}",
    says: ['query', 'is not a name of DNS: write parts of 1 to 63 characters with one dot between two'],
  },
  {
    sites: [],
    entry: "{kind: dns, query: a.test, server: 'udp://ns1.test'}",
    says: ['server', /^is neither a host nor host:port/],
  },
  // Lines of a protocol
  {
    sites: ['checks/kinds/ftp/control.ts: `the argument of ${name} contains a line break'],
    entry: '{kind: ftp, host: h, username: "a\\nb", password: {env: T}}',
    env: { T: 'x' },
    says: ['username', 'contains a line break, which its protocol cannot send: write it on one line'],
  },
  {
    sites: ['checks/kinds/ftp/control.ts: `the argument of ${name} contains a line break'],
    entry: '{kind: ftp, host: h, username: a, password: {env: T}}',
    env: { T: 'x\ny' },
    warns: true,
    says: [
      'password',
      'names the variable T, whose value has a character that a line cannot contain: checks that need it will fail',
    ],
  },
  {
    sites: ['checks/kinds/smtp/connection.ts: `the argument of ${name} contains a line break'],
    entry: '{kind: smtp, host: h, recipient: "a\\nb@c.test"}',
    says: ['', 'recipient must be an address like monitor@example.org'],
  },
  {
    sites: ['checks/kinds/ldap/session.ts: `the filter ${quote(filter, 120)} is not valid'],
    entry: "{kind: ldap, url: 'ldap://127.0.0.1', entry: {filter: '(uid='}}",
    says: ['', 'the filter "(uid=" is not valid: write it in the form (uid=alice)'],
  },
  // URLs of databases
  {
    sites: [target],
    entry: "{kind: postgres, url: 'postgres://monitor@db1/app?sslmode=require'}",
    says: ['url', 'has an unsupported sslmode: write verify-full or disable, or remove it and configure tls:'],
  },
  {
    sites: [target],
    entry: "{kind: postgres, url: 'postgres://monitor@db1/app?sslmode=disable', tls: {mode: verify}}",
    says: ['url', 'has an sslmode that contradicts tls: remove one of them'],
  },
  {
    sites: [target],
    entry: "{kind: mysql, url: 'mysql://monitor@db1/app?socketPath=/run/m.sock'}",
    says: ['url', 'has the unsupported parameter socketPath: svc connects over TCP, so write the host after the @'],
  },
  {
    sites: [target],
    entry: "{kind: pgbouncer, url: 'postgres://db1/pgbouncer'}",
    says: ['url', 'has no user: write it like scheme://user@host:port/database'],
  },
  {
    sites: [target],
    entry: "{kind: sqlserver, url: 'sqlserver://monitor@db1/app?encrypt=true'}",
    says: ['url', 'has the unsupported parameter encrypt: configure encryption with tls:'],
  },
  {
    sites: [target],
    entry: "{kind: mongo, url: 'mongodb://monitor@db1/?replicaSet=rs0'}",
    says: ['url', 'has the unsupported parameter replicaSet: configure encryption with tls:'],
  },
  {
    sites: [target],
    entry: "{kind: mysql, url: 'mysql://monitor@db1/app', source: 'mysql://db2/'}",
    says: ['source', 'has no user: write it like scheme://user@host:port/database'],
  },
  {
    sites: [target],
    entry: "{kind: postgres, url: 'postgres://mon%zz@db1/app'}",
    says: ['url', 'has a "%" that is not followed by two hexadecimal digits'],
  },
  {
    sites: [],
    entry: "{kind: mysql, url: 'mysql://monitor@db1/', allowWrites: true}",
    says: ['url', /^has no database, and allowWrites needs one/],
  },
  {
    sites: [],
    entry: "{kind: mysql, url: 'mysql://monitor@db1/', password: {keychain: m}, source: 'mysql://monitor@db2/'}",
    says: ['source', /^needs a password from a file or a variable/],
  },
  // Statements
  ...['postgres', 'mysql', 'sqlite'].map(
    (kind): Planted => ({ sites: several, entry: sql(kind, 'SELECT 1; SELECT 2'), says: ['', oneStatement] }),
  ),
  { sites: several, entry: sql('sqlserver', 'SELECT 1 SELECT 2'), says: ['', oneStatement] },
  { sites: several, entry: sql('postgres', 'DELETE FROM a'), says: ['', /^query "q": sql begins with "DELETE"/] },
  // Paths of files
  { sites: [], entry: '{kind: sqlite, path: a.db}', says: ['path', 'is not an absolute path: begin it with /'] },
  {
    sites: [],
    entry: '{kind: sqlite, path: /srv/a.db, backup: old}',
    says: ['backup', 'is not an absolute path: begin it with /'],
  },
  {
    sites: ['base/system/allowed-program.ts: why)'],
    entry: '{kind: exec, command: check}',
    says: ['command', 'is not an absolute path: begin it with /'],
  },
  {
    sites: [],
    entry: '{kind: process, executable: x, count: {min: 3, max: 1}}',
    says: ['count.min', 'is 3, above `max:` (1), so that every value breaks one of them'],
  },
  // Files
  {
    sites: certificates,
    entry: '{kind: tls, host: h, caFile: /nowhere/ca.pem}',
    warns: true,
    says: ['caFile', 'names the file /nowhere/ca.pem, which does not exist: checks that need it will fail'],
  },
  {
    sites: certificates,
    entry: '{kind: tls, host: h, caFile: FOLDER/ca.pem}',
    files: { 'ca.pem': 'x' },
    warns: true,
    says: [
      'caFile',
      /^names the file .*ca\.pem, which svc cannot use: caFile .* contains no PEM certificate; checks that need it will fail$/,
    ],
  },
  {
    sites: [
      'checks/kinds/deployment.ts: `${path} ${fileProblem(error)}`)',
      'checks/kinds/deployment.ts: `${from} is empty`)',
    ],
    entry: '{kind: deployment, versionFile: /srv/v, expectedFile: FOLDER/e}',
    files: { e: '\n' },
    warns: true,
    says: ['expectedFile', /^names the file .*, which is empty: checks that need it will fail$/],
  },
  {
    sites: [secret],
    entry: http('token: {env: T}'),
    warns: true,
    says: ['token', 'names the variable T, which is not set here: checks that need it will fail'],
  },
  {
    sites: [secret],
    entry: http('token: {file: t}'),
    warns: true,
    says: ['token', 'names the file t, which does not exist: checks that need it will fail'],
  },
  {
    sites: [secret],
    entry: http('token: {file: t}'),
    files: { t: '' },
    warns: true,
    says: ['token', /^names the file t, which svc cannot use: .* the file is empty; checks/],
  },
  {
    sites: [secret],
    entry: http('token: {file: t}'),
    files: { t: Uint8Array.of(0xff) },
    warns: true,
    says: ['token', /^names the file t, which svc cannot use: .* it is not UTF-8 text; checks/],
  },
  {
    sites: [secret],
    entry: http('token: {file: t}'),
    files: { t: 'x'.repeat(65 * 1_024) },
    warns: true,
    says: ['token', /^names the file t, which svc cannot use: .* it is larger than 64 KiB/],
  },
  {
    sites: [
      'checks/kinds/sftp/ssh.ts: `the private key ${origin} cannot be used: ${w',
      'checks/kinds/sftp/ssh.ts: `${origin} is a public key; privateKey require',
    ],
    entry: '{kind: sftp, host: h, username: u, privateKey: {file: k}}',
    files: { k: 'ssh-ed25519 AAAA' },
    warns: true,
    says: ['privateKey', 'names the file k, whose value is not a private key: checks that need it will fail'],
  },
]
