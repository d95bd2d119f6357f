import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { RequestListener, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { resultOf } from '../../../src/core/watch/drill/index.ts'
import { type Drilled, drilled } from '../../support/notify/drilled.ts'
import { type AlertmanagerServer, alertmanagerMissing, startAlertmanager } from '../../support/servers/alertmanager.ts'
import { type Certificates, makeCertificates } from '../../support/servers/certs.ts'
import { type SmtpPeer, smtpAccount, startSmtp } from '../../support/servers/smtp.ts'
import { type HttpPeer, httpPeer } from '../../support/simulated/http-peer.ts'
import { peerSuite } from '../../support/suite/peer.ts'
import { until } from '../../support/suite/until.ts'

vi.setConfig({ testTimeout: 600_000, hookTimeout: 300_000 })

/** A hop that is broken. `repair` gives it back. */
type Broken = {
  readonly name: string
  /** The receiver `hop` of svc.yaml, without its name. */
  readonly receiver: string
  readonly env?: Readonly<Record<string, string>>
  readonly programs?: readonly string[]
  readonly prepare?: (folder: string) => void
  readonly cleanUp?: (folder: string) => void
  /** Before the drill, with its store. */
  readonly breaks?: (site: Drilled) => void | Promise<void>
  /** The hop that the drill names, or that it calls not proven. */
  readonly expected: { readonly hop: string; readonly result: 'failed' | 'not proven'; readonly message: RegExp }
  readonly repair: (site: Drilled) => void | Promise<void>
}

/** A server whose answer a test replaces. */
async function webhook(answer: RequestListener) {
  const state = { answer, accepted: 0 }
  const peer = await httpPeer((request, response) => state.answer(request, response))
  const ok: RequestListener = (request, response) => {
    void text(request).then(() => {
      state.accepted += 1
      response.writeHead(204).end()
    })
  }
  const repair = (): void => {
    state.answer = ok
  }
  return { peer, state, repair }
}
const status =
  (code: number, headers: Readonly<Record<string, string>> = {}): RequestListener =>
  (_, response: ServerResponse) =>
    void response.writeHead(code, headers).end('no')

const route = (name: string, more = ''): string =>
  `route: {receiver: ${name}, group_wait: 1s, group_interval: 1s}\nreceivers: [{name: ${name}${more}}]\n`

peerSuite(alertmanagerMissing, 'the way of an alarm, broken in 25 ways', () => {
  const closing: (() => Promise<void> | void)[] = []
  const broken: Broken[] = []
  const sites = new Map<string, Drilled>()
  let other: HttpPeer
  let certificates: Certificates

  const add = (one: Broken): void => void broken.push(one)
  const hook = async (name: string, answer: RequestListener, expected: Broken['expected']): Promise<void> => {
    const { peer, repair } = await webhook(answer)
    closing.push(() => peer[Symbol.asyncDispose]())
    add({ name, receiver: `webhook: {url: "${peer.origin}"}`, expected, repair })
  }
  const failed = (hop: string, message: RegExp): Broken['expected'] => ({ hop, result: 'failed', message })
  const alertmanagerOf = async (...of: Parameters<typeof startAlertmanager>): Promise<AlertmanagerServer> => {
    const server = await startAlertmanager(...of)
    closing.push(() => server.remove())
    return server
  }
  const to = (...servers: readonly { readonly url: string }[]): string =>
    `alertmanager: {urls: [${servers.map(({ url }) => `"${url}"`).join(', ')}]}`
  const smtp = async (options: Parameters<typeof startSmtp>[0] = {}): Promise<SmtpPeer> => {
    const server = await startSmtp(options)
    closing.push(() => server[Symbol.asyncDispose]())
    return server
  }
  const mail = (port: number, rcpt: string, more = ''): string =>
    `email: {server: "smtp://127.0.0.1:${port}", from: a@svc.test, to: ["${rcpt}@svc.test"]${more}}`

  beforeAll(async () => {
    other = await httpPeer((_, response) => response.writeHead(204).end())
    closing.push(() => other[Symbol.asyncDispose]())
    certificates = makeCertificates()
    closing.push(() => certificates.remove())

    await hook('a wrong token', status(401), failed('accepted', /answered 401 and refuses the credentials/))
    await hook('500', status(500), failed('accepted', /answered 500/))
    await hook('429 with Retry-After', status(429, { 'Retry-After': '300' }), failed('accepted', /answered 429/))
    await hook('an answer that does not come', () => {}, failed('accepted', /did not answer within 10 s/))
    await hook('404', status(404), failed('accepted', /answered 404/))
    await hook('a redirect', status(302, { Location: 'http://elsewhere.example/' }), failed('accepted', /redirects/))
    await hook(
      'a connection that is cut',
      (request) => void request.socket.destroy(),
      failed('accepted', /closed|hung up|reset/),
    )
    await hook('200 without reading the body', status(200), {
      hop: 'opened',
      result: 'not proven',
      message: /nobody has confirmed the message/,
    })

    const expired = createServer({ key: certificates.expired.key, cert: certificates.expired.cert }, (_, response) =>
      response.writeHead(204).end(),
    )
    await new Promise<void>((resolve) => expired.listen(0, '127.0.0.1', resolve))
    closing.push(() => void expired.close())
    add({
      name: 'an expired certificate',
      receiver: `webhook: {url: "https://127.0.0.1:${(expired.address() as AddressInfo).port}", ca: ${certificates.caFile}}`,
      expected: failed('accepted', /expired/),
      repair: () => expired.setSecureContext({ key: certificates.good.key, cert: certificates.good.cert }),
    })
    const gone = await httpPeer(() => {})
    await gone[Symbol.asyncDispose]()
    let back: HttpPeer | undefined
    closing.push(() => back?.[Symbol.asyncDispose]())
    add({
      name: 'a server that is down',
      receiver: `webhook: {url: "${gone.origin}"}`,
      expected: failed('accepted', /refused the connection/),
      repair: async () => {
        const { createServer: create } = await import('node:http')
        const server = create((_, response) => response.writeHead(204).end())
        await new Promise<void>((resolve) => server.listen(gone.port, '127.0.0.1', resolve))
        closing.push(() => void server.close())
      },
    })
    add({
      name: 'a name that does not exist',
      receiver: 'webhook: {url: "http://nowhere.invalid/"}',
      expected: failed('accepted', /nowhere\.invalid/),
      repair: async ({ part }) => {
        const { load } = await import('../../config/given.ts')
        const { peer, repair } = await webhook(status(500))
        closing.push(() => peer[Symbol.asyncDispose]())
        repair()
        ;(await part.reload?.(await load(yamlOf(`webhook: {url: "${peer.origin}"}`))))?.()
      },
    })

    const silent = await alertmanagerOf(route('nobody'))
    add({
      name: 'an Alertmanager whose route notifies nobody',
      receiver: to(silent),
      expected: failed('routed', /routed to "nobody", which notifies nobody/),
      repair: () => {},
    })
    const silenced = await alertmanagerOf(route('ops', `, webhook_configs: [{url: "${other.origin}/never"}]`))
    add({
      name: 'a silence in Alertmanager',
      receiver: to(silenced),
      breaks: async () => {
        const matchers = [{ name: 'drill', value: 'true', isRegex: false, isEqual: true }]
        const [startsAt, endsAt] = [new Date(Date.now() - 1_000), new Date(Date.now() + 3_600_000)]
        const body = JSON.stringify({ matchers, startsAt, endsAt, createdBy: 'test', comment: 'test' })
        const headers = { 'Content-Type': 'application/json' }
        await fetch(`${silenced.url}/api/v2/silences`, { method: 'POST', headers, body })
      },
      expected: failed('routed', /suppresses the alert: silence [0-9a-f-]{36}/),
      repair: () => {},
    })
    const failing = await webhook(status(400))
    closing.push(() => failing.peer[Symbol.asyncDispose]())
    const cannot = await alertmanagerOf(route('ops', `, webhook_configs: [{url: "${failing.peer.origin}"}]`))
    add({
      name: 'an Alertmanager whose own receiver fails',
      receiver: to(cannot),
      expected: failed('notified', /notifications of .* failed since the drill began: \d+ by webhook/),
      repair: failing.repair,
    })
    const working = await webhook(status(500))
    working.repair()
    closing.push(() => working.peer[Symbol.asyncDispose]())
    const fine = route('ops', `, webhook_configs: [{url: "${working.peer.origin}"}]`)
    const sound = await alertmanagerOf(fine)
    add({
      name: 'one of two Alertmanagers that is down',
      receiver: to(sound, { url: gone.origin }),
      expected: failed('accepted', /refused the connection/),
      repair: async ({ part }) => {
        const { load } = await import('../../config/given.ts')
        ;(await part.reload?.(await load(yamlOf(to(sound)))))?.()
      },
    })
    const drops = await webhook((_, response) =>
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('[]'),
    )
    closing.push(() => drops.peer[Symbol.asyncDispose]())
    add({
      name: 'an Alertmanager (simulated) that accepts alerts and drops them',
      receiver: to({ url: drops.peer.origin }),
      expected: failed('listed', /accepted the alert and does not list it/),
      repair: () => {},
    })
    const elsewhere = await alertmanagerOf(fine)
    add({
      name: 'a wrong path before Alertmanager',
      receiver: to({ url: `${elsewhere.url}/prefix` }),
      expected: failed('accepted', /is not an Alertmanager at this path|answered 404/),
      repair: async ({ part }) => {
        const { load } = await import('../../config/given.ts')
        ;(await part.reload?.(await load(yamlOf(to(elsewhere)))))?.()
      },
    })

    let refuses = true
    const rcpt = await smtp({
      onRcptTo: (_, __, done) =>
        refuses ? done(Object.assign(new Error('No such user here'), { responseCode: 550 })) : done(),
    })
    add({
      name: 'a mail server that refuses the recipient',
      receiver: mail(rcpt.port, 'ops'),
      expected: failed('accepted', /No such user here/),
      repair: () => {
        refuses = false
      },
    })
    let delays = true
    const grey = await smtp({
      onRcptTo: (_, __, done) =>
        delays ? done(Object.assign(new Error('Greylisted, try again'), { responseCode: 450 })) : done(),
    })
    add({
      name: 'a mail server that delays',
      receiver: mail(grey.port, 'ops'),
      expected: failed('accepted', /Greylisted/),
      repair: () => {
        delays = false
      },
    })
    const secure = await smtp({ authInClear: true, allowInsecureAuth: true, hideSTARTTLS: true })
    const account = `, username: ${smtpAccount.username}, password: {env: MAIL}`
    add({
      name: 'a mail server with another password',
      receiver: mail(secure.port, 'accepted', account),
      env: { MAIL: 'wrong' },
      expected: failed('accepted', /refuses the sign-in/),
      repair: async ({ part }) => {
        const { load } = await import('../../config/given.ts')
        const config = await load(yamlOf(mail(secure.port, 'accepted', account)), { MAIL: smtpAccount.password })
        ;(await part.reload?.(config))?.()
      },
    })
    const accepting = await smtp()
    add({
      name: 'a mail that waits in a queue for ever',
      receiver: mail(accepting.port, 'accepted'),
      expected: { hop: 'opened', result: 'not proven', message: /nobody has confirmed the message/ },
      repair: () => {},
    })

    const pager = await webhook(status(400))
    closing.push(() => pager.peer[Symbol.asyncDispose]())
    add({
      name: 'PagerDuty (simulated) that does not know the key',
      receiver: `pagerduty: {routingKey: {env: PD}, drillRoutingKey: {env: PD_DRILL}, url: "${pager.peer.origin}"}`,
      env: { PD: 'production', PD_DRILL: 'drill' },
      expected: failed('accepted', /answered 400 and refuses the event/),
      repair: () => {
        pager.state.answer = (_, response) => void response.writeHead(202).end()
      },
    })

    const folder = mkdtempSync(join(tmpdir(), 'svc-drill-programs-'))
    chmodSync(folder, 0o755)
    closing.push(() => rmSync(folder, { recursive: true, force: true }))
    const program = (name: string, script: string): string => {
      writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`)
      chmodSync(join(folder, name), 0o755)
      return join(folder, name)
    }
    const sms = program('sms', 'echo no credit >&2; exit 1')
    add({
      name: 'a program that fails',
      receiver: `exec: {program: ${sms}}`,
      programs: [folder],
      expected: failed('accepted', /exited with 1: "no credit"/),
      repair: () => void program('sms', 'cat > /dev/null'),
    })
    const queue = join(folder, 'queue')
    add({
      name: 'a program that does not exist',
      receiver: `exec: {program: ${queue}}`,
      programs: [folder],
      expected: failed('accepted', /does not exist/),
      repair: () => void program('queue', 'cat > /dev/null'),
    })

    const sound2 = await webhook(status(500))
    sound2.repair()
    closing.push(() => sound2.peer[Symbol.asyncDispose]())
    let filler = ''
    let disk = ''
    add({
      name: 'a full disk under the outbox',
      receiver: `webhook: {url: "${sound2.peer.origin}"}`,
      prepare: (path) => {
        disk = path
        expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m,mode=700', 'none', path]).status).toBe(0)
      },
      cleanUp: (path) => void spawnSync('umount', ['--lazy', path]),
      breaks: () => {
        filler = join(disk, 'filler')
        for (const block of [65_536, 4_096, 1_024]) {
          try {
            for (;;) writeFileSync(filler, Buffer.alloc(block), { flag: 'a' })
          } catch {
            // It is full.
          }
        }
      },
      expected: failed('outbox', /the message is not stored: /),
      repair: () => rmSync(filler),
    })
  })
  afterAll(async () => {
    for (const site of sites.values()) await site[Symbol.asyncDispose]()
    for (const close of closing.toReversed()) await close()
  })

  const yamlOf = (receiver: string): string =>
    `serve: {name: prod, url: "http://127.0.0.1:1"}\nnotify:\n  - {name: hop, ${receiver}}\n  - {name: other, webhook: {url: "${other.origin}/other"}}\n`

  describe('M14 one drill through each, all at the same time', () => {
    test('names the hop, or says that it is not proven: in each of 25 ways', async () => {
      expect(broken.length).toBe(25)
      const outcomes = await Promise.all(
        broken.map(async ({ name, receiver, env, programs, prepare, cleanUp, breaks, expected }) => {
          const site = await drilled(yamlOf(receiver), {
            ...(env ? { env } : {}),
            ...(programs ? { programs } : {}),
            ...(prepare ? { prepare } : {}),
            ...(cleanUp ? { cleanUp } : {}),
          })
          sites.set(name, site)
          await breaks?.(site)
          const { hops } = await site.drill('hop')
          const worst = hops.find(({ result }) => result === resultOf(hops))
          const isNamed =
            worst?.hop === expected.hop && worst.result === expected.result && expected.message.test(worst.message)
          return isNamed ? [] : [{ name, expected, hops }]
        }),
      )
      expect(outcomes.flat()).toEqual([])
    })

    test('sends nothing to a receiver that is not named', () => {
      expect(other.requestLines().filter((line) => line.includes('/other'))).toEqual([])
    })

    test('touches neither the rows of incidents nor the states', async () => {
      for (const { data } of sites.values()) {
        expect(await data.outbox.read()).toEqual([])
        expect((await data.states.read()).states).toEqual([])
      }
    })

    test('loses nothing: once the hop is back, what waited arrives, and the next drill goes through', async () => {
      const lost: string[] = []
      for (const { name, repair } of broken) {
        const site = sites.get(name)
        if (!site) continue
        await repair(site)
        site.part.answers?.()
      }
      await Promise.all(
        broken.map(async ({ name }) => {
          const site = sites.get(name)
          await until(async () => (await site?.data.drills.outbox.read())?.length === 0, 120_000, 500).catch(() =>
            lost.push(name),
          )
        }),
      )
      expect(lost).toEqual([])
      await wait(1_000)
      const stillBroken = new Set([
        'an Alertmanager whose route notifies nobody',
        'a silence in Alertmanager',
        'an Alertmanager (simulated) that accepts alerts and drops them',
      ])
      const failures = await Promise.all(
        broken
          .filter(({ name }) => !stillBroken.has(name))
          .map(async ({ name }) => {
            const { hops = [] } = (await sites.get(name)?.drill('hop')) ?? {}
            const bad = hops.filter(({ result }) => result === 'failed')
            return bad.length === 0 && hops.some(({ hop }) => hop === 'accepted') ? [] : [{ name, bad }]
          }),
      )
      expect(failures.flat()).toEqual([])
      expect(other.requestLines().filter((line) => line.includes('/other'))).toEqual([])
    })
  })
})
