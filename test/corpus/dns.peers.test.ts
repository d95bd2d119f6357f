import { execFileSync } from 'node:child_process'
import { type Bind, bindMissing, startBind } from '../support/servers/bind.ts'
import { startUnbound, type Unbound, unboundMissing } from '../support/servers/unbound.ts'
import { startZoneServer, zoneServerMissing } from '../support/servers/zone-servers.ts'
import { corpus } from './corpus.ts'
import type { PeerProgram } from './peers.ts'
import { fails, notChecked, type Row, warns } from './row.ts'

type Place = { readonly port: number; readonly server: string }

const ask = ({ port, server }: Place, query: string, type = 'A', address?: string): readonly PeerProgram[] => [
  {
    program: 'check_dig',
    args: [
      ...['-H', '127.0.0.1', '-p', String(port), '-l', query, '-T', type, '-t', '4'],
      ...(address === undefined ? [] : ['-a', address]),
    ],
  },
  {
    program: 'blackbox_exporter',
    module: { prober: 'dns', dns: { query_name: query, query_type: type, preferred_ip_protocol: 'ip4' } },
    target: server,
  },
]

type Zones = {
  readonly good: Bind
  readonly same: Bind
  readonly late: Bind
  readonly fiveDays: Bind
  readonly oneDay: Bind
  readonly expired: Bind
  /** Answers what it has asked `good`. */
  readonly forwarding: Bind
}

const lookUp =
  (query: string, more: object = {}, name: keyof Zones = 'good') =>
  (zones: Zones) => ({ kind: 'dns', query, server: zones[name].server, ...more })

const lost = /gone\.svc\.test.*no address|no address.*gone\.svc\.test/

const bindRows: readonly Row<Zones>[] = [
  {
    fault: 'a healthy signed zone',
    monitor: ({ good, same }) =>
      lookUp('svc.test', { type: 'SOA', records: 1, signed: true, nameServers: [good.server, same.server] })({
        good,
      } as Zones),
    expected: { state: 'healthy' },
    peers: ({ good }) => ask(good, 'svc.test', 'SOA'),
  },
  {
    fault: 'a healthy name',
    monitor: lookUp('www.svc.test', { expect: ['192.0.2.1'], exact: true }),
    expected: { state: 'healthy' },
    peers: ({ good }) => ask(good, 'www.svc.test', 'A', '192.0.2.1'),
  },
  {
    fault: 'the name was removed',
    monitor: lookUp('gone.svc.test'),
    expected: fails('answer', 'dns', /gone\.svc\.test does not exist \(NXDOMAIN\)/),
    peers: ({ good }) => ask(good, 'gone.svc.test'),
  },
  {
    fault: 'healthy alias of a name in another zone, asked at its own server',
    monitor: lookUp('cdn.svc.test'),
    expected: { state: 'healthy' },
    before: 'no A record',
    peers: ({ good }) => ask(good, 'cdn.svc.test'),
  },
  {
    fault: 'the address of an alias in another zone cannot be compared at its own server',
    monitor: lookUp('cdn.svc.test', { expect: ['192.0.2.1'] }),
    expected: notChecked('expected', /alias of edge\.cdn\.example.*another zone/),
    peers: ({ good }) => ask(good, 'cdn.svc.test', 'A', '192.0.2.1'),
  },
  {
    fault: 'aliases that form a loop',
    monitor: lookUp('loop.svc.test'),
    expected: fails(
      'answer',
      'dns',
      /loop\.svc\.test is an alias of itself: loop\.svc\.test -> back\.svc\.test -> loop\.svc\.test/,
    ),
    peers: ({ good }) => ask(good, 'loop.svc.test'),
  },
  {
    fault: 'a name of a zone that is delegated to other servers',
    monitor: lookUp('www.sub.svc.test'),
    expected: fails(
      'answer',
      'dns',
      /does not serve www\.sub\.svc\.test, but refers to ns\.sub\.svc\.test for sub\.svc\.test/,
      { never: /knows www/ },
    ),
    peers: ({ good }) => ask(good, 'www.sub.svc.test'),
  },
  ...['mail MX', 'none MX', '_good._tcp SRV', 'svc.test NS'].map((question): Row<Zones> => {
    const [name = '', type = ''] = question.split(' ')
    const query = name === 'svc.test' ? name : `${name}.svc.test`
    return {
      fault: `healthy targets of ${question}`,
      monitor: ({ good, same }) => ({
        kind: 'dns',
        query,
        type,
        server: good.server,
        ...(type === 'NS' ? { nameServers: [good.server, same.server] } : {}),
      }),
      expected: { state: 'healthy' },
      peers: ({ good }) => ask(good, query, type),
    }
  }),
  ...['lost MX', '_lost._tcp SRV'].map((question): Row<Zones> => {
    const [name = '', type = ''] = question.split(' ')
    return {
      fault: `a target without an address: ${question}`,
      monitor: ({ good }) => ({ kind: 'dns', query: `${name}.svc.test`, type, server: good.server }),
      mode: 'Standard',
      // With one host left, clients still reach the service.
      expected: type === 'MX' ? warns('targets', lost) : fails('targets', 'dns', lost),
      before: 'ok',
      peers: ({ good }) => ask(good, `${name}.svc.test`, type),
    }
  }),
  {
    fault: 'an alias of a name that was removed',
    monitor: lookUp('dangling.svc.test'),
    expected: fails('answer', 'dns', /dangling\.svc\.test is an alias of gone\.svc\.test, which does not exist/, {
      never: /dangling\.svc\.test does not exist/,
    }),
    peers: ({ good }) => ask(good, 'dangling.svc.test'),
  },
  {
    fault: 'an alias of a name without an address',
    monitor: lookUp('empty.svc.test'),
    expected: fails('answer', 'dns', /alias of texts\.svc\.test.*no A record/),
    peers: ({ good }) => ask(good, 'empty.svc.test'),
  },
  {
    fault: 'healthy, asked over TCP',
    monitor: lookUp('www.svc.test', { transport: 'tcp', expect: ['192.0.2.1'], exact: true, ttl: '60s' }),
    expected: { state: 'healthy' },
  },
  {
    fault: 'the address was changed, asked over TCP',
    monitor: lookUp('www.svc.test', { transport: 'tcp', expect: ['192.0.2.7'] }),
    expected: fails('expected', 'data', /lacks 192\.0\.2\.7; it is 192\.0\.2\.1/),
  },
  {
    fault: 'a record may be cached for too long',
    monitor: lookUp('www.svc.test', { ttl: '30s' }),
    expected: fails('ttl', 'threshold', /www\.svc\.test A may be cached for 1 min/),
  },
  ...(
    [
      ['healthy: the name is gone', 'gone', { state: 'healthy' }],
      ['healthy: the name has no address any more', 'texts', { state: 'healthy' }],
      ['the name is still there', 'www', fails('answer', 'dns', /NOERROR \(1 record\) .*expected NXDOMAIN/)],
      ['the name may be in a zone of others', 'www.sub', fails('answer', 'dns', /refers to ns\.sub\.svc\.test/)],
    ] as const
  ).map(
    ([fault, name, expected]): Row<Zones> => ({
      fault: `a name that is to be gone: ${fault}`,
      monitor: lookUp(`${name}.svc.test`, { rcode: 'NXDOMAIN' }),
      expected,
      peers: ({ good }) => [
        {
          program: 'blackbox_exporter',
          module: {
            prober: 'dns',
            dns: {
              query_name: `${name}.svc.test`,
              query_type: 'A',
              preferred_ip_protocol: 'ip4',
              valid_rcodes: ['NXDOMAIN'],
            },
          },
          target: good.server,
        },
      ],
    }),
  ),
  {
    fault: 'a name that is to be gone, at a server that does not serve the zone',
    monitor: ({ good }) => ({ kind: 'dns', query: 'www.example.org', server: good.server, rcode: 'NXDOMAIN' }),
    expected: fails('answer', 'dns', /answers REFUSED .*expected NXDOMAIN/),
  },
  {
    fault: 'the address was changed',
    monitor: lookUp('www.svc.test', { expect: ['192.0.2.7'] }),
    expected: fails('expected', 'data', /lacks 192\.0\.2\.7; it is 192\.0\.2\.1/),
    peers: ({ good }) => ask(good, 'www.svc.test', 'A', '192.0.2.7'),
  },
  {
    fault: 'an address too many',
    monitor: lookUp('pool.svc.test', { expect: ['192.0.2.8'], exact: true }),
    expected: fails('expected', 'data', /also has 192\.0\.2\.9/),
    peers: ({ good }) => ask(good, 'pool.svc.test', 'A', '192.0.2.8'),
  },
  {
    fault: 'too few records',
    monitor: lookUp('pool.svc.test', { records: 3 }),
    expected: fails('records', 'threshold', /\b2\b.*\b3\b/),
    peers: ({ good }) => ask(good, 'pool.svc.test'),
  },
  {
    fault: 'a name server of the zone has an old serial',
    monitor: ({ good, late }) => ({
      kind: 'dns',
      query: 'svc.test',
      type: 'SOA',
      server: good.server,
      nameServers: [good.server, late.server],
    }),
    expected: warns('serial', /serials 7, 4/),
    peers: ({ good }) => ask(good, 'svc.test', 'SOA'),
  },
  {
    fault: 'the signatures expire in 5 days',
    monitor: lookUp('www.svc.test', { signed: true }, 'fiveDays'),
    expected: warns('signatures', /in [45](?:\.\d)? d/),
    peers: ({ fiveDays }) => ask(fiveDays, 'www.svc.test'),
  },
  {
    fault: 'the signatures expire in a day',
    monitor: lookUp('www.svc.test', { signed: true }, 'oneDay'),
    expected: fails('signatures', 'threshold', /first expires on/),
    peers: ({ oneDay }) => ask(oneDay, 'www.svc.test'),
  },
  {
    fault: 'the signatures have expired',
    monitor: lookUp('www.svc.test', { signed: true }, 'expired'),
    expected: fails('signatures', 'any', /expired/, { never: /in -/ }),
    peers: ({ expired }) => ask(expired, 'www.svc.test'),
  },
  {
    fault: 'the zone is not signed any more',
    monitor: lookUp('www.svc.test', { signed: true }, 'late'),
    expected: fails('signatures', 'data', /not signed/),
    peers: ({ late }) => ask(late, 'www.svc.test'),
  },
  {
    fault: 'the zone cannot be loaded',
    monitor: lookUp('www.broken.test'),
    expected: fails('answer', 'dns', /SERVFAIL/),
    peers: ({ good }) => ask(good, 'www.broken.test'),
  },
  {
    fault: 'a name of a zone that it does not serve',
    monitor: lookUp('www.example.org'),
    expected: fails('answer', 'dns', /REFUSED.*does not serve this zone/),
    peers: ({ good }) => ask(good, 'www.example.org'),
  },
  {
    fault: 'the name server is frozen',
    monitor: lookUp('www.svc.test', { timeout: '3s' }),
    plant: async ({ good }) => {
      good.freeze()
      return good.thaw
    },
    expected: fails('answer', 'timeout', /did not answer within/),
    peers: ({ good }) => ask(good, 'www.svc.test'),
  },
  {
    fault: 'a name server of the zone answers from its cache, without authority',
    monitor: ({ good, forwarding }) => ({
      kind: 'dns',
      query: 'svc.test',
      type: 'SOA',
      server: forwarding.server,
      nameServers: [good.server, forwarding.server],
    }),
    expected: warns('serial', /1 name server of 2.*not authoritative/),
    before: 'ok',
    peers: ({ good }) => ask(good, 'svc.test', 'SOA'),
  },
  {
    fault: 'a name server of the zone is stopped',
    monitor: ({ good, same }) => ({
      kind: 'dns',
      query: 'svc.test',
      type: 'SOA',
      server: good.server,
      nameServers: [good.server, same.server],
    }),
    plant: async ({ same }) => {
      await same.stop('SIGTERM')
      return undefined
    },
    expected: warns('serial', /1 name server of 2.*did not report a serial/),
    peers: ({ good }) => ask(good, 'svc.test', 'SOA'),
  },
  {
    fault: 'the name server is stopped',
    monitor: lookUp('www.svc.test', {}, 'late'),
    plant: async ({ late }) => {
      await late.stop('SIGTERM')
      return undefined
    },
    expected: fails('answer', 'refused', /no name server on that port/),
    peers: ({ late }) => ask(late, 'www.svc.test'),
  },
]

const version = (program: string, missing: string | undefined, option: string): string =>
  missing === undefined
    ? ` ${/(\d+\.\d+\.\d+)/.exec(execFileSync('sh', ['-c', `${program} ${option} 2>&1`], { encoding: 'utf8' }))?.[1] ?? ''}`
    : ''

corpus<Zones>({
  server: `BIND${version('named', bindMissing, '-v')}`,
  missing: bindMissing,
  start: async () => {
    const records = [
      'pool A 192.0.2.8',
      'pool A 192.0.2.9',
      'cdn CNAME edge.cdn.example.',
      'loop CNAME back',
      'back CNAME loop',
      'sub NS ns.sub',
      'ns.sub A 192.0.2.53',
      'mail MX 10 www',
      'none MX 0 .',
      'lost MX 10 www',
      'lost MX 20 gone',
      '_good._tcp SRV 0 0 5060 www',
      '_lost._tcp SRV 0 0 5060 gone',
    ]
    const good = await startBind({ serial: 7, signedForDays: 30.5, records, brokenZone: 'broken.test' })
    return {
      good,
      forwarding: await startBind({ forwardsTo: good.port }),
      same: await startBind({ serial: 7 }),
      late: await startBind({ serial: 4 }),
      fiveDays: await startBind({ signedForDays: 5.5 }),
      oneDay: await startBind({ signedForDays: 1.5 }),
      expired: await startBind({ signedForDays: -3 }),
    }
  },
  rows: bindRows,
})

/** The statistics of BIND, read as XML over a plain connection. */
const statistics =
  (more: object = {}) =>
  ({ statisticsPort }: Bind) => ({
    kind: 'tcp',
    host: '127.0.0.1',
    port: statisticsPort,
    send: 'GET /xml/v3/zones HTTP/1.0\r\n\r\n',
    ...more,
  })
const serialOf = (expected: string) => ({ '/statistics/views/view[0]/zones/zone[0]/serial': expected })
const zones = (atLeast: number) => ({
  name: 'zones',
  path: '/statistics/views/view/zones/zone',
  where: { type: 'primary' },
  least: { limit: atLeast },
})
const askStatistics =
  (expected: string) =>
  ({ statisticsPort }: Bind): readonly PeerProgram[] => [
    {
      program: 'check_tcp',
      args: [
        ...['-H', '127.0.0.1', '-p', String(statisticsPort), '-t', '4', '-E', '-s'],
        ...['GET /xml/v3/zones HTTP/1.0\\r\\n\\r\\n', '-e', expected],
      ],
    },
  ]

corpus<Bind>({
  server: `BIND${version('named', bindMissing, '-v')}, statistics over TCP`,
  missing: bindMissing,
  start: () => startBind({ serial: 7 }),
  rows: [
    {
      fault: 'healthy',
      monitor: statistics({ xml: serialOf('7'), measure: [zones(1)] }),
      expected: { state: 'healthy' },
      peers: askStatistics('HTTP/1.0 200'),
    },
    {
      fault: 'an old serial is loaded',
      monitor: statistics({ xml: serialOf('8') }),
      expected: fails('xml', 'data', /serial.*7.*8|serial.*8.*7/),
      peers: askStatistics('<serial>8<'),
    },
    {
      fault: 'a zone is missing',
      monitor: statistics({ measure: [zones(2)] }),
      expected: fails('measure', 'any', /zones.*\b1\b.*\b2\b/),
      peers: askStatistics('HTTP/1.0 200'),
    },
    {
      fault: 'another document than expected',
      monitor: statistics({ xml: { '/Reply/@Success': '1' } }),
      expected: fails('xml', 'data', /\/Reply\/@Success/),
      peers: askStatistics('Success'),
    },
    {
      fault: 'the server is frozen',
      monitor: statistics({ xml: serialOf('7'), timeout: '2s' }),
      plant: async ({ freeze, thaw }) => {
        freeze()
        return thaw
      },
      expected: fails('answer', 'timeout', /sent nothing/),
      peers: askStatistics('HTTP/1.0 200'),
    },
  ],
})

type Resolvers = {
  readonly zone: Bind
  readonly expired: Bind
  readonly validating: Unbound
  readonly ofExpired: Unbound
  readonly overridden: Unbound
  readonly refusing: Unbound
  /** Its upstream is stopped. */
  readonly cutOff: Unbound
}

const resolve =
  (query: string, more: object = {}, name: Exclude<keyof Resolvers, 'zone' | 'expired'> = 'validating') =>
  (resolvers: Resolvers) => ({ kind: 'dns', query, server: resolvers[name].server, ...more })

const unboundRows: readonly Row<Resolvers>[] = [
  {
    fault: 'healthy, with signatures that it validates',
    monitor: resolve('www.svc.test', { expect: ['192.0.2.1'], records: 1, signed: true }),
    expected: { state: 'healthy' },
    peers: ({ validating }) => ask(validating, 'www.svc.test', 'A', '192.0.2.1'),
  },
  {
    fault: 'a name server of the zone is a resolver',
    monitor: ({ zone, validating }) => ({
      kind: 'dns',
      query: 'svc.test',
      type: 'SOA',
      server: zone.server,
      nameServers: [zone.server, validating.server],
    }),
    expected: warns('serial', /1 name server of 2.*did not report a serial/),
    before: 'ok',
    peers: ({ zone }) => ask(zone, 'svc.test', 'SOA'),
  },
  {
    fault: 'aliases that form a loop',
    monitor: resolve('loop.svc.test'),
    expected: fails('answer', 'dns', /alias of itself/),
    peers: ({ validating }) => ask(validating, 'loop.svc.test'),
  },
  {
    fault: 'the signatures of the zone have expired',
    monitor: resolve('www.svc.test', {}, 'ofExpired'),
    expected: fails('answer', 'dns', /SERVFAIL.*DNSSEC/),
    peers: ({ ofExpired }) => ask(ofExpired, 'www.svc.test'),
  },
  {
    fault: 'the name server of the zone is stopped',
    monitor: resolve('www.svc.test', { timeout: '8s' }, 'cutOff'),
    // Unbound itself waits for the name server longer than its clients wait.
    expected: fails('answer', 'timeout', /did not answer within [\d.]+ s/),
    peers: ({ cutOff }) => ask(cutOff, 'www.svc.test'),
  },
  {
    fault: 'the name does not exist',
    monitor: resolve('gone.svc.test'),
    expected: fails('answer', 'dns', /NXDOMAIN/),
    peers: ({ validating }) => ask(validating, 'gone.svc.test'),
  },
  {
    fault: 'the resolver overrides the address',
    monitor: resolve('www.svc.test', { expect: ['192.0.2.1'] }, 'overridden'),
    expected: fails('expected', 'data', /it is 198\.51\.100\.1/),
    peers: ({ overridden }) => ask(overridden, 'www.svc.test', 'A', '192.0.2.1'),
  },
  {
    fault: 'the resolver refuses this client',
    monitor: resolve('www.svc.test', {}, 'refusing'),
    expected: fails('answer', 'dns', /REFUSED.*not this client/),
    peers: ({ refusing }) => ask(refusing, 'www.svc.test'),
  },
  {
    fault: 'the resolver is frozen',
    monitor: resolve('www.svc.test', { timeout: '3s' }),
    plant: async ({ validating }) => {
      validating.freeze()
      return validating.thaw
    },
    expected: fails('answer', 'timeout', /did not answer within/),
    peers: ({ validating }) => ask(validating, 'www.svc.test'),
  },
  {
    fault: 'the resolver is stopped',
    monitor: resolve('www.svc.test', {}, 'overridden'),
    plant: async ({ overridden }) => {
      await overridden.stop('SIGTERM')
      return undefined
    },
    expected: fails('answer', 'refused', /no name server on that port/),
    peers: ({ overridden }) => ask(overridden, 'www.svc.test'),
  },
]

corpus<Resolvers>({
  server: `Unbound${version('unbound', unboundMissing, '-V')}`,
  missing: bindMissing ?? unboundMissing,
  start: async () => {
    const zone = await startBind({ signedForDays: 30.5, records: ['loop CNAME back', 'back CNAME loop'] })
    const expired = await startBind({ signedForDays: -3 })
    const gone = await startBind()
    const cutOff = await startUnbound({ upstream: gone })
    await gone.remove()
    const lines = ['local-zone: "www.svc.test." redirect', 'local-data: "www.svc.test. A 198.51.100.1"']
    return {
      zone,
      expired,
      cutOff,
      validating: await startUnbound({ upstream: zone }),
      ofExpired: await startUnbound({ upstream: expired }),
      overridden: await startUnbound({ upstream: { ...zone, trustAnchor: undefined }, lines }),
      refusing: await startUnbound({ upstream: zone, refuses: true }),
    }
  },
  rows: unboundRows,
})

// Both answer a loop with NOERROR and its first alias alone, like an alias of another zone.
const loop = fails('answer', 'dns', /loop\.svc\.test is an alias of itself: loop.* -> back.* -> loop/)
for (const program of ['nsd', 'knotd'] as const) {
  corpus<Place>({
    server: program === 'nsd' ? 'NSD 4.6' : 'Knot 3.2',
    missing: zoneServerMissing(program),
    start: () => startZoneServer(program, ['www A 192.0.2.1', 'web CNAME www', 'loop CNAME back', 'back CNAME loop']),
    rows: [
      {
        fault: 'healthy alias of a name in the same zone',
        monitor: ({ server }) => ({ kind: 'dns', query: 'web.svc.test', server }),
        expected: { state: 'healthy' },
      },
      {
        fault: 'aliases that form a loop, never met',
        monitor: ({ server }) => ({ kind: 'dns', query: 'loop.svc.test', server }),
        expected: loop,
        shallower: { Basic: loop, Standard: loop },
        client: {
          asks: ({ port }) =>
            execFileSync('dig', ['@127.0.0.1', '-p', `${port}`, 'loop.svc.test'], { encoding: 'utf8' }),
          gets: /NOERROR.*loop\.svc\.test\.\s+60\s+IN\s+CNAME/s,
        },
        peers: (place) => ask(place, 'loop.svc.test'),
      },
    ],
  })
}
