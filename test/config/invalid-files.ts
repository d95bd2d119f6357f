/**
 * Files that users write wrongly, each with what `svc monitors validate` has to say: what is wrong (the line, and the
 * setting where there is one), why, and what to do next.
 */
export type InvalidFile = {
  readonly mistake: string
  readonly yaml: string
  readonly what: string
  readonly why: string
  readonly next: string
  /** 0 for what is wrong only here, such as a missing variable; else 12. */
  readonly code: 0 | 12
}

const file = (mistake: string, yaml: string, what: string, why: string, next: string): InvalidFile => ({
  mistake,
  yaml,
  what,
  why,
  next,
  code: 12,
})
const warned = (...args: Parameters<typeof file>): InvalidFile => ({ ...file(...args), code: 0 })

/** The lines of the monitors of App, from line 3 on. */
const app = (...lines: readonly string[]): string => `types:\n  App:\n${lines.map((line) => `    ${line}\n`).join('')}`
const tcp = (...more: readonly string[]): string => app('- kind: tcp', '  host: a', '  port: 1', ...more)
const http = (...more: readonly string[]): string => app('- kind: http', '  url: http://a/', ...more)
const postgres = (...more: readonly string[]): string => app('- kind: postgres', '  url: postgres://svc@a/db', ...more)

export const invalidFiles: readonly InvalidFile[] = [
  // The form of YAML
  file('a tab', 'types:\n  App:\n\t- kind: tcp\n', ':3:1:', 'indented with a tab', 'use spaces'),
  file('a tab after spaces', app('- kind: tcp', '\thost: a', '  port: 1'), ':4:5:', 'with a tab', 'use spaces'),
  file('a non-breaking space', app('- kind: tcp', '\u00a0 host: a'), ':4:5:', 'not a space', 'use spaces'),
  file('a line too far right', app('- kind: tcp', '   host: a'), ':3:13:', 'next line is indented too far', 'column'),
  file('a line too far left', app('- kind: tcp', ' host: a'), ':4:1:', 'indented incorrectly', 'in the same column'),
  file('a quote without an end', http('  name: "shop'), ':5:13:', 'not closed', 'close it'),
  file('a bracket without an end', app('- {kind: tcp, port: 1', '- {kind: tcp}'), ':3:7:', 'not closed', 'add `}`'),
  file('no space after a colon', app('- kind:http', '  url: http://a/'), ':3:7:', 'lacks the colon', '`name: value`'),
  file('no colon', app('- kind: http', '  url http://a/'), ':4:7:', 'lacks a comma, or the colon', '`name: value`'),
  file(
    'an equals sign',
    app('- kind = http', '  url = http://a/'),
    ':3:7: types.App[0]',
    'must be settings',
    '`kind:`',
  ),
  file('a colon in a value', http('  name: shop: live'), ':5:13:', 'two settings on one line', 'in quotes'),
  file('a reserved character', http('  name: @shop'), ':5:13:', 'reserved character', 'put the text in quotes'),
  file('a backslash', http('  matches: "\\d+"'), ':5:17:', 'backslash in double quotes', 'use single quotes'),
  file('an alias without an anchor', http('  name: *shop'), ':5:13:', 'without an anchor', 'quote texts'),
  file('a tag', postgres('  password: !vault db'), ':5:17:', 'uses a tag', 'remove it'),
  file('two documents', `${tcp()}---\n${tcp()}`, ':6:1:', 'several documents', 'keep one'),
  file('a comma too many', '{"types": {"App": [{"kind": "tcp"},,]}}', ':1:36:', 'comma too many', 'remove it'),
  file('a setting twice', tcp('  host: b'), ':6:7:', '`host` twice, here and at 4:7', 'keep one of them'),
  file('a type twice', 'types:\n  App: []\n  App: []\n', ':3:3:', '`App` twice, here and at 2:3', 'keep one'),
  file('a merge of a text', app('- <<: web', '  kind: tcp'), ':3:11:', 'merges something other', '`<<: *name`'),
  // Another file
  file('a page of HTML', '<html><body>404</body></html>\n', ':1:1:', 'not a svc.yaml', 'types, profiles, serve'),
  file(
    'a file of passwords',
    'root:$y$x:20228::::::\n',
    ':1:1:',
    'not a svc.yaml',
    'types, profiles, serve, auth and notify',
  ),
  file('an empty file', '', 'svc.yaml', 'configures nothing', 'svc monitors discover'),
  // Sections and types
  file('a type at the top', 'App:\n  - {kind: tcp}\n', ':1:1: App', 'belongs under `types:`', '`types: {App: …}`'),
  file('monitors at the top', 'monitors:\n  - {kind: tcp}\n', ':1:1: monitors', 'belongs under', 'write `types:`'),
  file('a section of another name', 'type:\n  App: []\n', ':1:1: type', 'not a setting here', 'did you mean `types`?'),
  file('a type of another name', 'types:\n  Ap: []\n', ':2:3: types.Ap', 'not a server type', 'did you mean `App`?'),
  file('a type in small letters', 'types:\n  app: []\n', ':2:3: types.app', 'not a server type', 'did you mean `App`?'),
  file('a type without a dash', app('kind: tcp', 'host: a'), ':3:5: types.App.kind', 'belongs to a monitor', '"- "'),
  file('types in a list', 'types:\n  - App\n', ':1:1: types', 'must map server types', 'write `Sql:`'),
  file('exec in an own file', 'exec:\n  allow: [/x]\n', ':1:1: exec', 'has no effect here', 'move it to /etc/svc'),
  // Kinds and names of settings
  file('a kind mistyped', app('- kind: htpp'), ':3:7: types.App[0].kind', 'not a monitor kind', 'mean `http`?'),
  file('the kind https', app('- kind: https'), ':3:7: types.App[0].kind', 'not a monitor kind', 'mean `http`?'),
  file('the kind icmp', app('- kind: icmp'), ':3:7: types.App[0].kind', 'not a monitor kind', 'mean `ping`?'),
  file('no kind', app('- url: http://a/'), ':3:7: types.App[0].kind', 'is missing', 'add `kind:`'),
  file(
    'type for kind',
    app('- type: http', '  url: http://a/'),
    ':3:7: types.App[0].type',
    'not a setting',
    'write `kind`',
  ),
  file('a setting mistyped', http('  statsu: 200'), ':5:7: types.App[0].statsu', 'not a setting', 'mean `status`?'),
  file(
    'hostname',
    app('- kind: tcp', '  hostname: a', '  port: 1'),
    ':4:7: types.App[0].hostname',
    'not a setting',
    'write `host`',
  ),
  file(
    'a host beside url',
    app('- kind: postgres', '  host: a'),
    ':4:7: types.App[0].host',
    'is part of `url:`',
    'postgres://user@host',
  ),
  file(
    'a word of Prometheus',
    http('  scrape_timeout: 30s'),
    'types.App[0].scrape_timeout',
    'not a setting',
    'svc monitors kinds http',
  ),
  file('a setting is missing', app('- kind: tcp', '  host: a'), 'types.App[0].port', 'is missing', 'add `port:`'),
  file(
    'an unknown profile',
    app('- profile: wordpress'),
    ':3:7: types.App[0].profile',
    'not a known profile',
    'use one of carbon',
  ),
  file(
    'a port in serve',
    'serve:\n  port: 8790\n',
    ':2:3: serve.port',
    'not a setting here',
    'remove it, or use one of',
  ),
  // Values
  file(
    'a number in quotes',
    app('- {kind: tcp, host: a, port: "80"}'),
    'types.App[0].port',
    'must be a number',
    'remove the quotes',
  ),
  file(
    'a port that no host has',
    app('- {kind: tcp, host: a, port: 80800}'),
    'types.App[0].port',
    'is 80800',
    'give 1 to 65535',
  ),
  file(
    'a port in the host',
    app('- {kind: tcp, host: "a:80", port: 80}'),
    'types.App[0].host',
    'contains a port',
    '`host: a`',
  ),
  file(
    'a URL as host',
    app('- {kind: tcp, host: "https://a/x", port: 443}'),
    'types.App[0].host',
    'is a URL',
    'its host, a',
  ),
  file(
    'a template that was not edited',
    app('- {kind: tcp, host: <your-host>, port: 1}'),
    'types.App[0].host',
    'not a host',
    'db1.internal',
  ),
  file(
    'typographic quotes',
    app('- {kind: tcp, host: “a”, port: 1}'),
    'types.App[0].host',
    'not a host',
    'write a name',
  ),
  file(
    'a URL without a scheme',
    app('- {kind: http, url: a/health}'),
    'types.App[0].url',
    'has no scheme',
    'http://host:port',
  ),
  file(
    'a URL of another scheme',
    app('- {kind: http, url: "ftp://a/"}'),
    'types.App[0].url',
    'begins with ftp:',
    'http://',
  ),
  file(
    'a status that no answer has',
    http('  status: [999]'),
    'types.App[0].status[0]',
    'is "999", which no answer has',
    '200-299',
  ),
  file('a method that does not exist', http('  method: FETCH'), 'types.App[0].method', 'must be one of', 'GET, HEAD'),
  file('a duration without a unit', http('  timeout: 5'), ':5:7: types.App[0].timeout', 'without a unit', 'write 5s'),
  file(
    'a duration in words',
    http('  timeout: 5sec'),
    ':5:7: types.App[0].timeout',
    'not "5sec"',
    'written like 250ms',
  ),
  file('a timeout that is too long', http('  timeout: 1h'), ':5:7: types.App[0].timeout', 'must be', '1ms to 10m'),
  file('a size for a time', http('  limit: 5MB'), ':5:7: types.App[0].limit', 'not "5MB"', 'written like 250ms'),
  file(
    'warn above limit',
    http('  warn: 5s', '  limit: 1s'),
    'types.App[0].warn',
    'fail before it warns',
    'swap warn and limit',
  ),
  file('days in words', http('  certificate: {warn: 30 days}'), 'certificate.warn', 'not "30 days"', 'like 20 or 20d'),
  file('yes for true', http('  verify: yes'), 'types.App[0].verify', 'not "yes"', 'must be true or false'),
  file(
    'a list for a text',
    app('- {kind: tcp, host: [a, b], port: 1}'),
    'types.App[0].host',
    'not a list',
    'must be text',
  ),
  file(
    'no value',
    app('- kind: tcp', '  host:', '  port: 1'),
    ':4:7: types.App[0].host',
    'has no value',
    'give it one',
  ),
  file('a depth in small letters', tcp('  depth: basic'), 'types.App[0].depth', 'not "basic"', 'did you mean Basic?'),
  file(
    'a control character in a name',
    tcp('  name: "a\\tb"'),
    'types.App[0].name',
    'invalid value',
    'printable characters',
  ),
  file(
    'two monitors of one name',
    app('- {kind: tcp, host: a, port: 1}', '- {kind: tcp, host: b, port: 1}'),
    ':4:7: types.App[1]',
    'same name as another monitor, `tcp`',
    'another `name:`',
  ),
  file(
    'a dependency that does not exist',
    tcp('  dependsOn: [db]'),
    'types.App[0].dependsOn',
    'names "db"',
    'write `tcp`',
  ),
  file('a wildcard as origin', 'serve:\n  origins: ["*"]\n', ':2:13: serve.origins[0]', 'wildcards', 'list each'),
  file('a proxy by name', 'serve:\n  behindProxy: [nginx]\n', 'serve.behindProxy[0]', 'must be an address', '10.0.0.7'),
  file(
    'a provider without an issuer',
    'auth:\n  openid:\n    - {name: google, clientId: x}\n',
    'auth.openid[0].issuer',
    'is missing',
    'add `issuer:`',
  ),
  file('another word for TLS', postgres('  tls: true'), ':5:7: types.App[0].tls', 'must be settings', '`name: value`'),
  // Variables and secrets
  file(
    'a variable of a shell',
    app('- {kind: tcp, host: $HOST, port: 1}'),
    'types.App[0].host',
    '$HOST, which svc does not replace',
    'write the value itself',
  ),
  file(
    'a variable in braces',
    app(`- {kind: tcp, host: "\${HOST}", port: 1}`),
    'types.App[0].host',
    `\${HOST}`,
    'write the value',
  ),
  file(
    'a template of Helm',
    app('- {kind: tcp, host: "{{ .Values.host }}", port: 1}'),
    'types.App[0].host',
    '{{ .Values.host }}',
    'write the value',
  ),
  file(
    'a variable in a URL',
    app('- kind: http', `  url: https://\${HOST}/health`),
    ':4:7: types.App[0].url',
    `\${HOST}`,
    'write the value itself',
  ),
  file(
    'a password',
    postgres('  password: hunter2'),
    ':5:7: types.App[0].password',
    'refer to a secret, not contain it',
    '{env: NAME}',
  ),
  file(
    'a variable as password',
    postgres('  password: $DB_PASSWORD'),
    'types.App[0].password',
    '$DB_PASSWORD',
    'write {env: DB_PASSWORD}',
  ),
  file(
    'a dollar sign in env',
    postgres('  password: {env: $DB_PASSWORD}'),
    'password.env',
    'without $',
    '{env: DB_PASSWORD}',
  ),
  file(
    'a secret from two places',
    postgres('  password: {env: A, file: /b}'),
    'types.App[0].password',
    'by env and file',
    'keep one',
  ),
  file(
    'a place of another name',
    postgres('  password: {environment: A}'),
    'types.App[0].password',
    'must name one variable',
    '{env: NAME}',
  ),
  file(
    'a tilde in a path',
    postgres('  password: {file: ~/pw}'),
    'password.file',
    'begins with "~"',
    'the absolute path',
  ),
  file(
    'a password in a URL',
    app('- kind: http', '  url: https://u:hunter2@a/'),
    'types.App[0].url',
    'contains a password',
    '{env: NAME}',
  ),
  file(
    'a credential in a header',
    http('  headers: {Authorization: Bearer hunter2}'),
    'headers.Authorization',
    'contains a credential',
    '{env: NAME}',
  ),
  warned(
    'a variable that is not set',
    postgres('  password: {env: NOT_SET_HERE}'),
    'types.App[0].password',
    'NOT_SET_HERE, which is not set here',
    'checks that need it will fail',
  ),
  warned(
    'a file that does not exist',
    postgres('  password: {file: /nonexistent/pw}'),
    'types.App[0].password',
    '/nonexistent/pw, which does not exist',
    'checks that need it will fail',
  ),
]
