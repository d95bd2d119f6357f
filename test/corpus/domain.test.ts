import { nameServer } from '../support/simulated/name-server.ts'
import { type RdapAnswer, type RdapServer, rdapServer, registered } from '../support/simulated/rdap.ts'
import { corpus } from './corpus.ts'
import { fails, notChecked, warns } from './row.ts'

// No registry may be asked by tests: the names of the suite and of its section on the page say that it is simulated.

type Registry = {
  readonly server: RdapServer
  readonly resolver: Awaited<ReturnType<typeof nameServer>>
  answer: RdapAnswer | undefined
}

const name = 'example.org'
const at = ({ server }: Registry) => ({ kind: 'domain', domain: name, server: server.url })
const answering = (answer: RdapAnswer | undefined) => async (registry: Registry) => {
  const before = registry.answer
  registry.answer = answer
  return () => {
    registry.answer = before
  }
}
const having = (days: number, more: object = {}) => answering({ body: registered(name, days, more) })

corpus<Registry>({
  server: 'RDAP (simulated)',
  missing: undefined,
  start: async () => {
    const registry = { answer: { body: registered(name) } } as { answer: RdapAnswer | undefined }
    const server = await rdapServer(() => registry.answer)
    return Object.assign(registry, { server, resolver: await nameServer([`ns1.${name}`]) })
  },
  stop: async ({ server, resolver }) => {
    await server.close()
    await resolver[Symbol.asyncDispose]()
  },
  rows: [
    { fault: 'healthy', monitor: at, plant: having(200), expected: { state: 'healthy' } },
    { fault: 'the domain expires in 20 days', monitor: at, plant: having(20), expected: warns('expiry', /20 d left/) },
    {
      fault: 'the domain has expired',
      monitor: at,
      plant: having(-2),
      expected: fails('expiry', 'threshold', /expires on .* left/),
    },
    {
      fault: 'the registry holds the domain',
      monitor: at,
      plant: having(200, { status: ['server hold'] }),
      expected: fails('status', 'data', /has the status server hold/),
    },
    {
      fault: 'the domain is no longer registered',
      monitor: at,
      plant: answering(undefined),
      expected: fails('answer', 'data', /has no domain example\.org/),
    },
    {
      fault: 'the domain is registered with other name servers than its zone has',
      monitor: (registry) => ({ ...at(registry), nameServers: true, resolver: registry.resolver.address }),
      plant: having(200, { nameservers: [{ ldhName: 'ns.elsewhere.example' }] }),
      expected: fails('name servers', 'data', /registered with ns\.elsewhere\.example, and its zone names ns1/),
    },
    {
      fault: 'the registry refuses requests',
      monitor: at,
      plant: answering({ status: 429 }),
      expected: notChecked('answer', /too many requests/),
    },
  ],
})
