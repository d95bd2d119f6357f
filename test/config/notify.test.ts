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
        settings: {
          accept: { status: ['2xx'] },
          each: 'message',
          method: 'POST',
          url: 'https://chat.example.com/hooks/a1b2c3d4',
        },
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

  const load = { monitor: 'host', tags: [], level: 'warning', isLoad: true } as const
  test.for([
    ['a receiver', {}, {}, false],
    ['a receiver of all monitors', { monitors: ['*'] }, {}, false],
    ['a receiver that names the host', { monitors: ['Sql/*', 'host'] }, {}, true],
    ['Alertmanager', {}, { routes: true }, true],
  ] as const)('M16 a warning about the load of the machine, for %s', ([, only, manner, expected]) => {
    expect(isFor({ severity: 'warning', ...only }, load, manner)).toBe(expected)
    expect(isFor({ severity: 'warning', ...only }, { ...load, level: 'failed' }, manner)).toBe(true)
    expect(isFor({ severity: 'warning', ...only }, { ...load, isLoad: false }, manner)).toBe(
      !('monitors' in only) || fitsHost(only.monitors),
    )
  })
  const fitsHost = (patterns: readonly string[]): boolean => patterns.some((one) => one === 'host' || one === '*')

  test('M1 a monitor of the machine itself belongs to no type', () => {
    expect(isFor({ types: ['Sql'], severity: 'warning' }, { ...about, type: undefined })).toBe(false)
    expect(isFor({ monitors: ['host'], severity: 'warning' }, { ...about, type: undefined, monitor: 'host' })).toBe(
      true,
    )
  })
})
