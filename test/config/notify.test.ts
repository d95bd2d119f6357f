import { describe, expect, test } from 'vitest'
import { isFor, receiverAddress } from '../../src/core/watch/notify/index.ts'
import { load, problemsOf, refused } from './given.ts'

const types = `types:
  Sql: {tags: [shop], monitors: [{kind: tcp, name: orders, host: db1, port: 5432, tags: [critical]}]}
  App: [{kind: tcp, name: shop, host: app1, port: 80}]
`
const webhook = 'webhook: {url: "https://chat.example.com/hooks/a1b2c3d4"}'
const one = (more: string): string => `${types}notify:\n  - {${more}}\n`

describe('the section notify of svc.yaml', () => {
  test('M1 a receiver has defaults for everything but its name and where it sends', async () => {
    const { notify } = await load(one(`name: chat, ${webhook}`))
    expect(notify).toEqual([
      {
        name: 'chat',
        kind: 'webhook',
        only: { severity: 'warning' },
        details: 'full',
        silences: 'honor',
        volatile: false,
        settings: { url: 'https://chat.example.com/hooks/a1b2c3d4' },
      },
    ])
  })

  test('M1 every setting of a receiver is read', async () => {
    const text = `${types}serve: {name: prod, url: "https://svc.example.com"}
notify:
  - name: am
    alertmanager: {urls: ["https://am1:9093", "https://am2:9093/prefix"], token: {env: AM}, ca: am-ca.pem}
  - name: ops
    email: {server: 'smtps://mail.internal', username: svc, password: {env: SMTP}, from: svc@example.com, to: [ops@example.com]}
    only: {types: [Sql], monitors: ['Sql/tcp *', tcp shop], tags: [critical], severity: failed}
    remind: 4h
    details: classes
    volatile: true
  - name: chat
    webhook: {url: {env: CHAT}, secret: {file: chat.key}}
    silences: ignore
`
    const config = await load(text, { AM: 'a', SMTP: 'b', CHAT: 'https://u:p@chat.example.com/x' })
    const { notify = [], serve } = config
    expect(serve).toMatchObject({ name: 'prod', url: 'https://svc.example.com' })
    expect(notify.map(({ name, kind }) => `${name} ${kind}`)).toEqual(['am alertmanager', 'ops email', 'chat webhook'])
    expect(notify.map(receiverAddress)).toEqual([
      'https://am1:9093, https://am2:9093',
      'smtps://mail.internal:465',
      'the URL of {env: CHAT}',
    ])
    expect(notify[1]).toMatchObject({
      only: { types: ['Sql'], monitors: ['Sql/tcp *', 'tcp shop'], tags: ['critical'], severity: 'failed' },
      remind: 14_400_000,
      details: 'classes',
      volatile: true,
    })
    expect(notify[0]?.settings).toMatchObject({ caFile: 'am-ca.pem' })
    expect(JSON.stringify(notify)).not.toContain('u:p@')
  })

  test.for([
    ['no list', 'notify: {name: a}', 'notify must be a list of receivers'],
    ['no name', one(webhook), 'notify[0].name is missing: add `name:`'],
    ['blanks in the name', one(`name: "a b", ${webhook}`), 'notify[0].name has the invalid value "a b"'],
    ['no way to send', one('name: a'), 'notify[0] does not say how to send: add one of alertmanager, webhook, email'],
    [
      'two ways to send',
      one(`name: a, ${webhook}, email: {server: "smtp://m", from: a@b.c, to: a@b.c}`),
      'notify[0].email is there beside webhook',
    ],
    [
      'two receivers of one name',
      `notify: [{name: a, ${webhook}}, {name: a, ${webhook}}]`,
      'notify[1].name is a, as is that of another receiver',
    ],
    [
      'an unknown kind',
      one('name: a, slack: {url: "https://a.example"}'),
      'notify[0].slack is not a kind of receiver: use one of alertmanager, webhook, email',
    ],
    [
      'the former name of silences',
      one(`name: a, ${webhook}, quiet: ignore`),
      'notify[0].quiet is not a setting here: write `silences`',
    ],
    [
      'the former name of silences, beside the kind',
      one('name: a, kind: webhook, url: "https://a.example", quiet: ignore'),
      'notify[0].quiet is not a setting here: write `silences`',
    ],
    [
      'an unknown type',
      one(`name: a, ${webhook}, only: {types: [Sqll]}`),
      'only.types[0] is "Sqll", which is not a server type: did you mean `Sql`?',
    ],
    [
      'a type without monitors',
      one(`name: a, ${webhook}, only: {types: [Ftp]}`),
      'only.types[0] is Ftp, for which this file has no monitors',
    ],
    [
      'an unknown monitor',
      one(`name: a, ${webhook}, only: {monitors: [tcp order]}`),
      'only.monitors[0] is "tcp order", which is not a monitor of this file: did you mean `tcp orders`?',
    ],
    [
      'a pattern that matches nothing',
      one(`name: a, ${webhook}, only: {monitors: ["Ftp/*"]}`),
      'only.monitors[0] is "Ftp/*", which is not a monitor',
    ],
    [
      'an unknown tag',
      one(`name: a, ${webhook}, only: {tags: [critcal]}`),
      'only.tags[0] is "critcal", which is not a tag of any monitor: did you mean `critical`?',
    ],
    [
      'an unknown severity',
      one(`name: a, ${webhook}, only: {severity: critical}`),
      'only.severity must be one of warning, failed',
    ],
    ['a reminder every second', one(`name: a, ${webhook}, remind: 1s`), 'notify[0].remind is 1s: give 1m to 30d'],
    [
      'a user in a URL',
      one('name: a, webhook: {url: "https://ann@chat.example.com/"}'),
      'webhook.url contains a user or a password: remove them',
    ],
    [
      'a password in a URL',
      one('name: a, webhook: {url: "https://ann:s3cret@chat.example.com/"}'),
      'webhook.url contains a password: remove it',
    ],
    [
      'a secret in the file',
      one('name: a, webhook: {url: "https://c.example/", secret: whsec_abc}'),
      'webhook.secret must refer to a secret, not contain it',
    ],
    [
      'no instances',
      one('name: a, alertmanager: {urls: []}'),
      'alertmanager.urls is empty: give the URL of each instance',
    ],
    [
      'an instance twice',
      one('name: a, alertmanager: {urls: ["https://am1", "https://am1"]}'),
      'alertmanager.urls[1] is there twice',
    ],
    [
      'the path of the API',
      one('name: a, alertmanager: {urls: ["https://am1/api/v2"]}'),
      'contains /api: write only what precedes it',
    ],
    [
      'a password in an instance',
      one('name: a, alertmanager: {urls: ["https://u:s3cret@am1"]}'),
      'alertmanager.urls[0] contains a user or a password',
    ],
    [
      'a token over http',
      one('name: a, alertmanager: {urls: ["http://am1:9093"], token: {env: T}}'),
      'alertmanager.urls[0] begins with http://, but credentials leave this machine only under TLS',
    ],
    [
      'a user without a password',
      one('name: a, alertmanager: {urls: ["https://am1"], username: u}'),
      'alertmanager.username needs username and password together',
    ],
    [
      'a reminder for Alertmanager',
      one('name: a, alertmanager: {urls: ["https://am1"]}, remind: 4h'),
      'notify[0].alertmanager repeats by itself: remove remind',
    ],
    [
      'a path at a mail server',
      one('name: a, email: {server: "smtp://m/x", from: a@b.c, to: a@b.c}'),
      'email.server contains more than host and port',
    ],
    [
      'a sender with a line break',
      one('name: a, email: {server: "smtp://m", from: "a@b.c\\nX: y", to: a@b.c}'),
      'email.from has the invalid value',
    ],
    ['no recipient', one('name: a, email: {server: "smtp://m", from: a@b.c, to: []}'), 'email.to is empty'],
    ['a name of the server with blanks', 'serve: {name: "my prod"}', 'serve.name has the invalid value "my prod"'],
    ['a page with a query', 'serve: {url: "https://svc.example.com/?a=b"}', 'serve.url must have neither a user'],
  ] as const)('M1 %s is a mistake', async ([, text, message]) => {
    const problems = problemsOf(await refused(text)).join('\n')
    expect(problems).toContain(message)
    expect(problems).not.toContain('s3cret')
  })

  test('M1 a token over http is accepted on loopback', async () => {
    const { notify } = await load(one('name: a, alertmanager: {urls: ["http://127.0.0.1:9093"], token: {env: T}}'), {
      T: 't',
    })
    expect(notify).toHaveLength(1)
  })

  test('M1 a missing secret is a warning', async () => {
    const { warnings } = await load(one('name: a, webhook: {url: {env: CHAT_URL}}'))
    expect(warnings.join()).toContain('notify[0].webhook.url names the variable CHAT_URL, which is not set here')
  })

  test('M1 the monitor of an entry with a mistake is no unknown monitor', async () => {
    const text =
      'types: {App: [{kind: tcp, name: shop, host: app1}]}\nnotify: [{name: a, webhook: {url: "https://c.example/"}, only: {monitors: [tcp shop]}}]'
    expect(problemsOf(await refused(text))).toEqual([expect.stringContaining('port is missing')])
  })
})

describe('what a receiver gets', () => {
  const about = { type: 'Sql', monitor: 'postgres orders', tags: ['shop'], level: 'warning' } as const
  test.for([
    [{ severity: 'warning' }, true],
    [{ severity: 'failed' }, false],
    [{ severity: 'warning', types: ['Sql'] }, true],
    [{ severity: 'warning', types: ['App'] }, false],
    [{ severity: 'warning', monitors: ['postgres orders'] }, true],
    [{ severity: 'warning', monitors: ['Sql/postgres orders'] }, true],
    [{ severity: 'warning', monitors: ['SQL/*'] }, true],
    [{ severity: 'warning', monitors: ['orders'] }, false],
    [{ severity: 'warning', monitors: ['App/*', 'postgres *'] }, true],
    [{ severity: 'warning', tags: ['shop', 'other'] }, true],
    [{ severity: 'warning', tags: ['other'] }, false],
    [{ severity: 'warning', types: ['Sql'], tags: ['other'] }, false],
  ] as const)('M1 all conditions of `only` have to apply: %j', ([only, expected]) => {
    expect(isFor(only, about)).toBe(expected)
  })

  test('M1 a monitor of the machine itself belongs to no type', () => {
    expect(isFor({ types: ['Sql'], severity: 'warning' }, { ...about, type: undefined })).toBe(false)
    expect(isFor({ monitors: ['host'], severity: 'warning' }, { ...about, type: undefined, monitor: 'host' })).toBe(
      true,
    )
  })
})
