import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text as textOf } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { load, problemsOf, refused } from '../../config/given.ts'
import { notice, type Opened, opened, signal } from '../../support/notify/notice.ts'
import { httpPeer } from '../../support/simulated/http-peer.ts'

const key = 'R0UT1NGKEY0123456789abcdef012345'
type Event = Readonly<Record<string, unknown>> & { readonly payload?: Readonly<Record<string, unknown>> }

const itemOf = ({ payload }: Event): string | undefined =>
  (payload?.['custom_details'] as { readonly item?: string } | undefined)?.item

/** A simulated Events API v2, and a receiver that sends to it. `answer` gets each event. */
async function simulated(
  answer: (event: Event, response: ServerResponse, request: IncomingMessage) => void = (_, response) =>
    response.writeHead(202).end('{"status":"success"}'),
  more = '',
  isTest = false,
) {
  const events: Event[] = []
  const peer = await httpPeer((request, response) => {
    void textOf(request).then((body) => {
      const event = JSON.parse(body) as Event
      events.push(event)
      answer(event, response, request)
    })
  })
  const yaml = `{name: oncall, pagerduty: {routingKey: {env: PD_KEY}, url: "${peer.origin}"${more}}}`
  const one: Opened = await opened(yaml, { env: { PD_KEY: key, PD_DRILL: 'drill-key' }, isTest })
  return { peer, events, ...one }
}

describe('simulated PagerDuty', () => {
  test('M12 an event has the key of its identity, a summary, a severity and the runbook', async () => {
    const { peer, events, receiver } = await simulated()
    await using _ = peer
    const sent = notice({ runbook: 'https://wiki.example.com/o', victims: { count: 1, names: ['App/http shop'] } })
    expect(await receiver.send([sent], signal())).toEqual({ what: 'accepted' })
    const identity = ['server', 'prod', 'type', 'Sql', 'monitor', 'postgres orders', 'check', 'connect']
    expect(events).toEqual([
      {
        routing_key: key,
        dedup_key: createHash('sha256').update(JSON.stringify(identity)).digest('hex'),
        client: 'svc prod',
        event_action: 'trigger',
        payload: {
          summary: '[prod] Sql/postgres orders: connect failed',
          source: 'prod',
          severity: 'critical',
          timestamp: '2026-11-24T11:43:14.000Z',
          component: 'Sql/postgres orders',
          group: 'Sql',
          class: 'connect',
          custom_details: {
            server: 'prod',
            type: 'Sql',
            monitor: 'postgres orders',
            check: 'connect',
            summary: 'Sql/postgres orders: connect failed',
            description: '10.0.0.7:5432 refused the connection',
            state: 'failed',
            fault: 'refused',
            incident: 'i1',
            victims: '1 monitor: App/http shop',
          },
        },
        links: [{ href: 'https://wiki.example.com/o', text: 'Runbook' }],
      },
    ])
    expect(peer.requestLines()).toEqual(['POST /v2/enqueue'])
  })

  test('M12 each severity and the end have the same key, and the end resolves', async () => {
    const { peer, events, receiver } = await simulated()
    await using _ = peer
    await receiver.send([notice()], signal())
    await receiver.send([notice({ id: 'n2', what: 'change', level: 'warning', before: 'failed' })], signal())
    await receiver.send([notice({ id: 'n3', what: 'end', endedAt: Date.UTC(2026, 10, 24, 12) })], signal())
    expect(new Set(events.map((event) => event['dedup_key'])).size).toBe(1)
    expect(events.map((event) => [event['event_action'], event.payload?.['severity']])).toEqual([
      ['trigger', 'critical'],
      ['trigger', 'warning'],
      ['resolve', undefined],
    ])
  })

  test('M12 the largest event is far smaller than 512 kB, and its summary has at most 1,024 characters', async () => {
    const { peer, events, receiver } = await simulated()
    await using _ = peer
    const long = 'ä'.repeat(600_000)
    const names = Array.from({ length: 500 }, () => long)
    const huge = notice(
      {
        text: long,
        fault: long,
        incident: long,
        runbook: `https://${long}`,
        victims: { count: 500, names },
        url: long,
      },
      { server: long, monitor: long, check: long, item: long, node: long },
    )
    expect(await receiver.send([huge], signal())).toEqual({ what: 'accepted' })
    expect(Buffer.byteLength(JSON.stringify(events[0]))).toBeLessThan(64 * 1_024)
    expect(String(events[0]?.payload?.['summary']).length).toBeLessThanOrEqual(1_024)
  })

  test.for([
    [202, { what: 'accepted' }],
    [200, { what: 'later', isPerhapsReceived: true, message: /answered 200, which is not the receipt/ }],
    [400, { what: 'refused', ids: ['n1'], fault: 'data', message: /answered 400 and refuses the event: "no"/ }],
    [401, { what: 'refused', fault: 'auth' }],
    [404, { what: 'refused', fault: 'data' }],
    [429, { what: 'later', isPerhapsReceived: false, afterMs: 120_000 }],
    [500, { what: 'later', isPerhapsReceived: true }],
  ] as const)('M12 the status %i decides whether it is sent again', async ([status, expected]) => {
    const { peer, receiver } = await simulated((_, response) =>
      response.writeHead(status, status === 429 ? { 'Retry-After': '120' } : {}).end('no'),
    )
    await using _ = peer
    const delivery = await receiver.send([notice()], signal())
    const { message, ...more } = expected as { readonly message?: RegExp }
    expect(delivery).toMatchObject(more)
    if (message) expect((delivery as { readonly message: string }).message).toMatch(message)
  })

  test('M12 what was accepted before a limit of requests is not sent again, and what is refused keeps nothing else from arriving', async () => {
    let isLimited = true
    const { peer, events, receiver } = await simulated((event, response) => {
      const item = itemOf(event)
      if (item === 'bad') response.writeHead(400).end('invalid')
      else if (item === 'c' && isLimited) response.writeHead(429).end()
      else response.writeHead(202).end()
    })
    await using _ = peer
    const all = ['a', 'bad', 'c', 'd'].map((item) => notice({ id: item }, { item }))
    expect(await receiver.send(all, signal())).toMatchObject({ what: 'later', isPerhapsReceived: true })
    isLimited = false
    expect(await receiver.send(all, signal())).toMatchObject({ what: 'refused', ids: ['bad'] })
    const items = events.map(itemOf)
    expect(items).toEqual(['a', 'bad', 'c', 'bad', 'c', 'd'])
  })

  test('M12 no event waits for others: it is sent alone and at once', async () => {
    const { peer, receiver } = await simulated()
    await using _ = peer
    expect(receiver.sendsEach).toBe(true)
    expect(receiver.renew).toBeUndefined()
  })

  test('M12 a test message ends an alert that does not exist: it pages nobody', async () => {
    const { peer, events, receiver } = await simulated(undefined, '', true)
    await using _ = peer
    expect(await receiver.send([notice()], signal())).toEqual({ what: 'accepted' })
    expect(events).toEqual([expect.objectContaining({ event_action: 'resolve', routing_key: key })])
    expect(events[0]?.payload).toBeUndefined()
    const other = await simulated(undefined, ', drillRoutingKey: {env: PD_DRILL}', true)
    await using __ = other.peer
    await other.receiver.send([notice()], signal())
    expect(other.events[0]?.['routing_key']).toBe('drill-key')
  })

  test('M5 the key appears in no text, also if the server repeats it', async () => {
    const { peer, receiver } = await simulated((event, response, request) =>
      response.writeHead(400).end(`${JSON.stringify(event)} ${request.url}`),
    )
    await using _ = peer
    const texts = JSON.stringify([await receiver.send([notice()], signal()), receiver.describe()])
    expect(texts).toContain('answered 400')
    expect(texts).not.toContain(key)
  })

  test('M12 mistakes are named with the way out', async () => {
    const entry = (more: string, outer = ''): string =>
      `notify:\n  - {name: oncall, pagerduty: {routingKey: {env: PD_KEY}${more}}${outer}}`
    const problems = async (yaml: string): Promise<string> => problemsOf(await refused(yaml)).join('\n')
    expect(await problems(entry(', url: "http://events.example.com"'))).toContain('credentials leave this machine only')
    expect(await problems(entry(', url: "https://events.example.com/v2/enqueue"'))).toContain(
      'write only scheme and host, like https://events.pagerduty.com',
    )
    expect(await problems(entry('', ', remind: 4h'))).toContain('remove remind')
    expect(await problems('notify:\n  - {name: oncall, pagerduty: {routingKey: abc}}')).toContain('{env: NAME}')
    const { notify } = await load(entry(''), { PD_KEY: key })
    expect(notify?.[0]?.settings).toMatchObject({ url: 'https://events.pagerduty.com' })
  })
})
