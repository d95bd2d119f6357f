import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Home } from '../support/program/svc.ts'
import { temporaryHome } from '../support/program/temporary-home.ts'
import { startSmtp } from '../support/servers/smtp.ts'
import { httpPeer } from '../support/simulated/http-peer.ts'

const home: Home = temporaryHome()

/** Writes svc.yaml with these receivers. */
function configure(...receivers: readonly string[]): void {
  const path = join(home.folder, 'svc.yaml')
  const list = receivers.map((receiver) => `  - ${receiver}\n`).join('')
  writeFileSync(
    path,
    `serve: {name: prod}\ntypes: {Sql: [{kind: tcp, name: orders, host: 127.0.0.1, port: 1, tags: [critical]}]}\nnotify:\n${list}`,
  )
  chmodSync(path, 0o600)
}
const webhook = (name: string, url: string): string => `{name: ${name}, webhook: {url: "${url}"}}`
/** A port of loopback at which nothing listens. */
const closed = async (): Promise<string> => {
  const peer = await httpPeer(() => {})
  await peer[Symbol.asyncDispose]()
  return peer.origin
}

describe('svc notify list', () => {
  test('M6 shows each receiver with its conditions, its place as scheme and host, and no secret', async () => {
    configure(
      '{name: am, alertmanager: {urls: ["https://am1:9093", "https://am2:9093"], token: {env: AM_TOKEN}}}',
      '{name: ops, email: {server: "smtps://mail.internal", from: a@b.c, to: d@e.f}, only: {types: [Sql], tags: [critical], severity: failed}, remind: 4h, details: classes}',
      webhook('chat', 'https://chat.example.com/hooks/T0P-53CR3T?k=53CR3T'),
    )
    const { code, stdout, stderr } = await home.run(['notify', 'list'], { columns: 200, env: { AM_TOKEN: 'plant-1' } })
    expect(code).toBe(0)
    expect(stdout).toMatch(/am +alertmanager +https:\/\/am1:9093, https:\/\/am2:9093 +full +honor/)
    expect(stdout).toMatch(
      /ops +email +smtps:\/\/mail.internal:465 +types Sql; tags critical; failed +4h +classes +honor/,
    )
    const json = await home.run(['notify', 'list', '--json'], { env: { AM_TOKEN: 'plant-1' } })
    expect(JSON.parse(json.stdout)).toMatchObject({
      receivers: [
        { name: 'am', kind: 'alertmanager', severity: 'warning', remindMs: null },
        { name: 'ops', types: ['Sql'], tags: ['critical'], severity: 'failed', remindMs: 14_400_000 },
        { name: 'chat', to: 'https://chat.example.com' },
      ],
    })
    expect(stdout + stderr + json.stdout).not.toMatch(/53CR3T|plant-1/)
  })

  test('M6 without receivers it says how to add one', async () => {
    writeFileSync(join(home.folder, 'svc.yaml'), 'types: {Sql: [{kind: tcp, host: 127.0.0.1, port: 1}]}\n')
    const { code, stdout } = await home.run(['notify', 'list'], { columns: 100 })
    expect(code).toBe(0)
    expect(stdout).toContain('No receiver of notifications is configured')
  })
})

describe('svc notify test', () => {
  test('M6 sends each receiver a message that says that it is a test, and is no alert', async () => {
    const bodies: string[] = []
    await using hook = await httpPeer((request, response) => {
      request.on('data', (part: Buffer) => bodies.push(String(part)))
      request.on('end', () => response.writeHead(200).end())
    })
    const mails: string[] = []
    await using mail = await startSmtp({
      onData: (stream, _, done) => {
        stream.on('data', (part: Buffer) => mails.push(String(part)))
        stream.once('end', () => done())
      },
    })
    configure(
      webhook('chat', `${hook.origin}/hook`),
      `{name: am, alertmanager: {urls: ["${hook.origin}"]}}`,
      `{name: ops, email: {server: "smtp://127.0.0.1:${mail.port}", from: svc@svc.test, to: accepted@svc.test}}`,
    )
    const { code, stdout } = await home.run(['notify', 'test'], { columns: 120 })
    expect([code, stdout]).toEqual([0, expect.stringContaining('3 of 3 receivers accepted the test message')])
    const alerts = bodies.flatMap((body) => {
      const parsed = JSON.parse(body) as { alerts?: readonly object[] } | readonly object[]
      return 'alerts' in parsed ? (parsed.alerts ?? []) : (parsed as readonly object[])
    })
    expect(alerts).toHaveLength(2)
    for (const alert of alerts) {
      expect(alert).toMatchObject({
        labels: { alertname: 'SvcTest', severity: 'none', test: 'true', server: 'prod' },
        annotations: { summary: 'Test message of svc notify test: nothing has failed' },
      })
    }
    expect(mails.join('')).toContain('Subject: [prod] TEST of svc notify test: nothing has failed')
    expect(`${bodies.join('')}${mails.join('')}`).not.toMatch(/FAILED|SvcFailed|SvcWarning|critical/)
  })

  test.for([
    ['a server that refuses the connection', 6, /refused the connection/],
    ['a name that does not exist', 6, /does not resolve/],
    ['a server that does not speak TLS', 6, /does not speak TLS on this port/],
    ['a server that hangs up', 8, /closed the connection/],
    ['a server that fails', 8, /answered 503: "busy"/],
    ['a server that refuses the credentials', 9, /answered 401 and refuses the credentials/],
    ['a server that refuses the message', 9, /answered 400 and refuses the message: "busy"/],
    ['a server that redirects', 9, /redirects are not followed/],
    ['a secret that is not set', 12, /the variable NO_URL is not set/],
  ] as const)('M6 %s: exit code %i, and why', async ([what, expected, why]) => {
    let status = 200
    await using peer = await httpPeer((request, response) => {
      if (status === 0) request.socket.destroy()
      else response.writeHead(status, { Location: '/elsewhere' }).end('busy')
    })
    const statuses: Readonly<Record<string, number>> = {
      'a server that hangs up': 0,
      'a server that fails': 503,
      'a server that refuses the credentials': 401,
      'a server that refuses the message': 400,
      'a server that redirects': 307,
    }
    status = statuses[what] ?? 200
    const urls: Readonly<Record<string, string>> = {
      'a server that refuses the connection': await closed(),
      'a name that does not exist': 'http://nowhere.invalid/',
      'a server that does not speak TLS': peer.origin.replace('http:', 'https:'),
    }
    if (what === 'a secret that is not set') configure('{name: chat, webhook: {url: {env: NO_URL}}}')
    else configure(webhook('chat', `${urls[what] ?? peer.origin}`))
    const { code, stdout } = await home.run(['notify', 'test', 'chat'], { columns: 300 })
    expect([code, stdout]).toEqual([expected, expect.stringMatching(why)])
    expect(stdout).toContain('0 of 1 receiver accepted the test message')
  })

  test('M6 if only some accept, the exit code is 10, and an unknown name lists the receivers', async () => {
    await using peer = await httpPeer((_, response) => response.writeHead(204).end())
    configure(webhook('chat', peer.origin), webhook('other', await closed()))
    const both = await home.run(['notify', 'test', '--json'])
    expect(both.code).toBe(10)
    expect(JSON.parse(both.stdout)).toMatchObject({
      tests: [
        { name: 'chat', result: 'accepted', message: null },
        { name: 'other', result: 'not accepted', message: expect.stringContaining('refused the connection') },
      ],
    })
    const unknown = await home.run(['notify', 'test', 'chta'])
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringMatching(/chta[\s\S]*chat/)])
  })

  test('M6 of two Alertmanagers, both have to accept a test', async () => {
    await using peer = await httpPeer((request, response) => {
      request.resume()
      request.on('end', () => response.writeHead(200).end('{}'))
    })
    configure(`{name: am, alertmanager: {urls: ["${peer.origin}", "${await closed()}"]}}`)
    const { code, stdout } = await home.run(['notify', 'test'], { columns: 200 })
    expect([code, stdout]).toEqual([6, expect.stringContaining('refused the connection')])
  })
})
