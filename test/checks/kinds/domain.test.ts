import { describe, expect, onTestFinished, test } from 'vitest'
import type { Services } from '../../../src/core/checks/engine/index.ts'
import domain from '../../../src/core/checks/kinds/domain/index.ts'
import { rdapServerOf } from '../../../src/core/checks/kinds/domain/servers.ts'
import { finds, findsOnly } from '../../support/engine/finds.ts'
import { type RunKindOptions, runKind } from '../../support/engine/run-kind.ts'
import { blackHole, peer, refusedPort } from '../../support/faults/faults.ts'
import { nameServer } from '../../support/simulated/name-server.ts'
import { type RdapAnswer, rdapServer, registered } from '../../support/simulated/rdap.ts'

const name = 'example.org'
const hour = 3_600_000

/** A simulated server whose answer the test chooses. */
async function registry(answer: RdapAnswer | ((name: string) => RdapAnswer)) {
  const server = await rdapServer(typeof answer === 'function' ? answer : () => answer)
  onTestFinished(server.close)
  return server
}
const look = (server: string, more: object = {}, options: RunKindOptions = {}) =>
  runKind(domain, { domain: name, server, ...more }, 'Standard', options)
/** The results for an answer of a simulated server. */
const resultsFor = async (body: unknown, more: object = {}) => look((await registry({ body })).url, more)

/** Answers that outlive a process, as in a store. */
function keeping(): { readonly rdapAnswers: Services['rdapAnswers']; readonly notes: Map<string, string> } {
  const notes = new Map<string, string>()
  return {
    notes,
    rdapAnswers: {
      read: async (key) => notes.get(key),
      write: async (key, text) => void notes.set(key, text),
    },
  }
}

describe('a domain at a simulated registry', () => {
  test('H91 that lasts is ok, with the days left and the age of the answer', async () =>
    await findsOnly(
      resultsFor(registered(name, 100)),
      'answer ok: 127.0.0.1:… answered … ago',
      [
        'expiry ok: example.org expires on …, 100 d left (warn below 30 d, fail below 10 d)',
        { details: [expect.stringMatching(/^The registry answered .* ago$/)] },
      ],
      'status ok: active, client transfer prohibited',
    ))

  test.each([
    [29, {}, 'expiry warning'],
    [9, {}, 'expiry failed (threshold)'],
    [-1, {}, 'expiry failed (threshold)'],
    [29, { expires: { limit: 30 } }, 'expiry failed (threshold)'],
  ])(
    'H91 that expires in %d days is judged by %j: %s',
    async (days, more, finding) => await finds(resultsFor(registered(name, days), more), finding),
  )

  test('H91 expires with the earliest of several dates', async () => {
    const { events } = registered(name, 5) as { readonly events: readonly object[] }
    const later = { eventAction: 'expiration', eventDate: '2999-01-01T00:00:00Z' }
    await finds(resultsFor(registered(name, 5, { events: [later, ...events] })), 'expiry failed (threshold)')
  })

  test.each(['client hold', 'server hold', 'redemption period', 'pending delete', 'Client Hold'])(
    'H91 with the status %s has failed',
    async (status) =>
      await finds(
        resultsFor(registered(name, 100, { status: ['active', status] })),
        `status failed (data): example.org has the status ${status}`,
      ),
  )

  test('H91 that the registry does not have has failed', async () => {
    const { url } = await registry({ status: 404, body: { errorCode: 404, title: 'Not Found' } })
    await findsOnly(look(url), 'answer failed (data): 127.0.0.1:… has no domain example.org (…')
  })

  test('H91 is asked for by its name in ASCII, at the base URL', async () => {
    const server = await registry((question) => ({ body: registered(question) }))
    await finds(look(server.url, { domain: 'Müller.Example.' }), 'answer ok')
    expect(server.requests).toEqual(['/rdap/domain/xn--mller-kva.example'])
  })
})

describe('what was not learned about a domain is not checked', () => {
  const date = (eventDate: unknown) => registered(name, 1, { events: [{ eventAction: 'expiration', eventDate }] })
  test.each([
    ['no dates', registered(name, 1, { events: undefined })],
    ['dates that are no list', registered(name, 1, { events: 'soon' })],
    ['an entry that is none', registered(name, 1, { events: [null, 7, []] })],
    ['a date that is none', date('soon')],
    ['a date of another type', date({ $date: 1 })],
    [
      'only the date of the registrar',
      registered(name, 1, { events: [{ eventAction: 'registrar expiration', eventDate: '2999-01-01T00:00:00Z' }] }),
    ],
  ])(
    'H91 the expiry, with %s',
    async (_, body) =>
      await finds(
        resultsFor(body),
        'expiry not checked (missing): not checked: the expiry of example.org is not reported',
      ),
  )

  test('H91 the status, without one in the answer', async () =>
    await finds(
      resultsFor(registered(name, 100, { status: undefined })),
      'status not checked (missing): …is not reported',
    ))

  const redirect = (location: string): RdapAnswer => ({ status: 302, headers: { Location: location } })
  test.each<[string, RdapAnswer, string]>([
    ['too many requests', { status: 429 }, 'answered 429 (too many requests)'],
    ['an outage', { status: 503 }, 'answered 503'],
    ['no such page', { status: 404, body: '<html>' }, 'answered 404'],
    ['no JSON', { body: '<html>' }, 'answered with something else than a domain'],
    ['nothing', { body: '' }, 'answered with something else than a domain'],
    ['a list', { body: [] }, 'answered with something else than a domain'],
    ['JSON that is nested too deep', { body: `${'['.repeat(50)}${']'.repeat(50)}` }, 'answered with something else'],
    ['something else', { body: { objectClassName: 'ip network' } }, 'answered with something else than a domain'],
    ['another domain', { body: registered('example.com') }, 'answered about "example.com"'],
    ['no name', { body: registered(name, 100, { ldhName: undefined }) }, 'answered about "undefined"'],
    ['more than 256 KiB', { body: `"${'x'.repeat(300_000)}"` }, 'answered with more than 256 KiB'],
    ['a redirect to nowhere', redirect('http://127.0.0.1:1/'), 'no answer: '],
    ['a redirect to itself', redirect(''), 'redirects in a loop'],
    ['a redirect elsewhere', redirect('ftp://127.0.0.1/'), 'which is not followed'],
  ])('H91 from an answer with %s', async (_, answer, says) => {
    const { url } = await registry(answer)
    await findsOnly(look(url), [`answer not checked (missing)`, says])
  })

  test('H91 from redirects beyond the bound; up to it they are followed', async () => {
    let left = 3
    const server = await registry((question) => {
      left -= 1
      return left < 0 ? { body: registered(name) } : redirect(`/${left}/${question}`)
    })
    await finds(look(server.url), 'answer ok')
    left = 4
    await findsOnly(look(`${server.url}2`), ['answer not checked (missing)', 'redirects more than 3 times'])
  })

  test('H91 hostile texts become one short line', async () => {
    const hostile = registered(name, 100, {
      status: [`\u001B[31m${'x'.repeat(5_000)}\n`, 7, null, ...Array(500).fill('a')],
    })
    const results = await resultsFor(hostile)
    const message = results.find(({ check }) => check === 'status')?.message ?? ''
    expect(message).not.toMatch(/[\u001B\n]/)
    expect(message.length).toBeLessThan(600)
  })

  test('H91 without a server that listens, or that answers in time', async () => {
    await findsOnly(look(`http://127.0.0.1:${await refusedPort()}`), ['answer not checked (missing)', 'no answer: '])
    await using silent = await peer(blackHole)
    await findsOnly(look(`http://127.0.0.1:${silent.port}`, {}, { timeoutMs: 300 }), [
      'answer not checked (missing)',
      'no answer',
    ])
  })

  test('H91 without a server that is known for the top-level domain, and without a request', async () => {
    const results = runKind(domain, { domain: 'example.de' }, 'Standard')
    await findsOnly(
      results,
      'answer not checked (missing): not checked: no RDAP server for example.de is known: set server',
    )
  })
})

describe('one answer for a domain and 6 h', () => {
  test('H91 serves every run, of this process and of others, and its age is shown', async () => {
    const server = await registry({ body: registered(name) })
    const { notes, rdapAnswers } = keeping()
    const services = { rdapAnswers }
    const at = (hours: number) => ({ date: () => new Date(Date.now() + hours * hour) })
    await finds(look(server.url, {}, { services }), 'answer ok')
    await finds(look(server.url, {}, { services, ...at(5) }), 'answer ok: 127.0.0.1:… answered 5 h ago')
    // Another process has the same store, and other objects.
    await finds(look(server.url, {}, { services: { rdapAnswers }, ...at(5.9) }), 'answer ok')
    expect(server.requests).toHaveLength(1)
    expect(notes.size).toBe(1)
    await finds(look(server.url, {}, { services, ...at(6.1) }), 'answer ok')
    expect(server.requests).toHaveLength(2)
  })

  test('H91 is also one that says nothing: the server that refuses is not asked again', async () => {
    const server = await registry({ status: 429 })
    const services = keeping()
    await finds(look(server.url, {}, { services }), 'answer not checked (missing)')
    await finds(look(server.url, {}, { services }), [
      'answer not checked (missing)',
      { details: [expect.stringMatching(/ago$/)] },
    ])
    expect(server.requests).toHaveLength(1)
  })

  test('H91 is shared by runs at the same time', async () => {
    const server = await registry({ body: registered(name) })
    const services = {}
    await Promise.all([1, 2, 3].map(async () => await finds(look(server.url, {}, { services }), 'answer ok')))
    expect(server.requests).toHaveLength(1)
  })

  test.each(['', 'x', '[]', 'null', '{}', '{"at": "now"}', JSON.stringify({ at: Date.now() + 9 * hour })])(
    'H91 is not taken from what is kept if that is %j',
    async (text) => {
      const server = await registry({ body: registered(name) })
      const rdapAnswers = { read: async () => text, write: async () => {} }
      await finds(look(server.url, {}, { services: { rdapAnswers } }), 'answer ok')
      expect(server.requests).toHaveLength(1)
    },
  )
})

describe('the settings', () => {
  test.each(['org', '10.0.0.7', 'https://example.org', 'example..org', 'a b.org', '-', ''])(
    'a domain cannot be %j',
    (text) => expect(domain.settings.domain.mistake?.(text)).toBe('is not a domain like example.org'),
  )
  test.each(['example.org', 'Example.ORG.', 'müller.de', 'a.b.co.uk', 'x.xn--p1ai'])('a domain can be %s', (text) =>
    expect(domain.settings.domain.mistake?.(text)).toBeUndefined(),
  )
  test('a server without TLS has to be on loopback', () => {
    const problem = (server: string) => domain.validate?.({ domain: name, server } as never)
    expect(problem('http://rdap.example.org/')).toBe('server has to be https, or on loopback')
    expect([problem('http://127.0.0.1:1/'), problem('https://rdap.example.org/')]).toEqual([undefined, undefined])
  })
})

describe('the list of servers', () => {
  test.each([
    ['example.com', 'https://rdap.verisign.com/com/v1/'],
    ['example.org', 'https://rdap.publicinterestregistry.org/rdap/'],
    ['www.bbc.co.uk', 'https://rdap.nominet.uk/uk/'],
    ['example.fr', 'https://rdap.nic.fr/'],
    ['example.de', undefined],
    ['*', undefined],
  ])('has for %s the server %s', (question, server) => expect(rdapServerOf(question)).toBe(server))
})

describe('the name servers of a domain, at a simulated registry and a simulated name server', () => {
  const names = (...all: readonly string[]) => ({ nameservers: all.map((ldhName) => ({ ldhName })) })
  test.each([
    [['NS1.example.org', 'ns2.example.net'], ['ns2.example.net', 'ns1.example.org'], 'name servers ok'],
    [['ns1.example.org', 'ns2.example.net'], ['ns1.example.org'], 'name servers warning'],
    [['ns1.example.org'], ['ns.elsewhere.example'], 'name servers failed (data)'],
    [['ns1.example.org'], 3, 'name servers failed (data): DNS has no zone example.org, …'],
    [['ns1.example.org'], 2, 'name servers not checked (missing): …cannot be looked up (ESERVFAIL)'],
    [[], ['ns1.example.org'], 'name servers not checked (missing): …are not reported'],
  ] as const)('H91 %j beside the zone with %j is: %s', async (registry, zone, finding) => {
    await using resolver = await nameServer(zone)
    const more = { nameServers: true, resolver: resolver.address }
    await finds(resultsFor(registered(name, 100, names(...registry)), more), finding)
  })

  test('H91 are not looked up unless svc.yaml says so', async () => {
    const results = await resultsFor(registered(name, 100))
    expect(results.map(({ check }) => check)).not.toContain('name servers')
  })
})
