import { expect, test } from 'vitest'
import http from '../../../src/core/checks/kinds/http/index.ts'
import tcp from '../../../src/core/checks/kinds/tcp.ts'
import { finds } from '../../support/engine/finds.ts'
import { runKind, withDefaults } from '../../support/engine/run-kind.ts'
import { peer, replies } from '../../support/faults/faults.ts'
import { givenUp } from '../../support/hostile/given-up.ts'
import { httpPeer } from '../../support/simulated/http-peer.ts'
import { processorMs } from '../../support/suite/processor-time.ts'

test('http: many patterns that backtrack share one budget: in headers, JSON, measures, and of a link', async () => {
  const text = `${'a'.repeat(60)}!`
  const many = Array.from({ length: 12 }, (_, index) => index)
  const map = (key: (n: number) => string) => Object.fromEntries(many.map((n) => [key(n), `/^(?=\\w)(\\w+)+${n}$/`]))
  const headers = Object.fromEntries(many.map((n) => [`X-H${n}`, text]))
  const body = Object.fromEntries(many.map((n) => [`k${n}`, text]))
  await using server = await httpPeer((_, response) => {
    response
      .writeHead(200, { 'Content-Type': 'application/json', ...headers })
      .end(JSON.stringify({ ...body, next: `${server.origin}/x` }))
  })
  const settings = {
    url: server.origin,
    header: map((n) => `X-H${n}`),
    json: map((n) => `$.k${n}`),
    measure: [{ name: 'm', path: '$', value: '.', where: map((n) => `k${n}`), count: { limit: 0 } }],
  }
  const start = processorMs()
  const results = await runKind(http, settings, 'Standard', { timeoutMs: 20_000 })
  // Once 250 ms; each by itself, they take 9 s.
  expect(processorMs() - start).toBeLessThan(2_000)
  await finds(
    results,
    ['header', new RegExp(givenUp)],
    'json failed (data): …was not tried, as another pattern for this answer timed out…',
    'measure failed (data)',
  )
  const links = [{ name: 'next', path: '$.next', json: map((n) => `$.k${n}`) }]
  const before = processorMs()
  const linked = await runKind(http, withDefaults(http.settings, { url: server.origin, links } as never), 'Standard')
  expect(processorMs() - before).toBeLessThan(1_500)
  await finds(linked, 'json: …(and 11 others)…')
  // The next answer has a budget of its own.
  const next = await runKind(http, { url: server.origin, json: { '$.k0': '/^a+!$/' } }, 'Standard')
  await finds(next, 'json ok')
})

test('tcp: many patterns that backtrack share one budget', async () => {
  const many = Array.from({ length: 12 }, (_, index) => index)
  const text = `${'a'.repeat(60)}!`
  const reply = `<a>${many.map((n) => `<k${n}>${text}</k${n}>`).join('')}</a>`
  const xml = Object.fromEntries(many.map((n) => [`/a/k${n}`, `/^(?=\\w)(\\w+)+${n}$/`]))
  const start = processorMs()
  await using there = await peer(replies(reply))
  const settings = { host: '127.0.0.1', port: there.port, maxAnswer: 1024 * 1024, send: 'x', xml }
  const results = await runKind(tcp, settings, 'Basic', { timeoutMs: 3_000 })
  // Once 250 ms; each by itself, they take 3 s.
  expect(processorMs() - start).toBeLessThan(1_500)
  await finds(results, ['xml failed (data)', new RegExp(String.raw`${givenUp}.* \(and 11 others\)$`)])
})
