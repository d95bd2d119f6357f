import type { KindName } from '../kinds/index.ts'
import type { ExecutionMode } from '../protocol/index.ts'

/** What one run costs the watched server. A sign-in is one proof of identity that the server verifies. */
export type Cost = {
  /** Connections that the server accepts, those for data included. Over UDP or ICMP: sessions, each from one port. */
  readonly connections: number
  /** What `KindCost.unit` names. */
  readonly requests: number
  readonly signIns: number
}

/** What a setting adds to the runs from a depth on. */
export type AddedCost = Partial<Cost> & {
  readonly setting: string
  readonly from: ExecutionMode
  /** For each item of the list, or as often as the number says, instead of once. */
  readonly each?: true
  /** Only items in which this field is set. */
  readonly where?: string
}

/** The cost of a run without optional settings, in which nothing fails, at one address. */
export type MeasuredCost = Readonly<Record<ExecutionMode, Cost>> & {
  /** What a request is, in the plural. */
  readonly unit: string
  readonly adds?: readonly AddedCost[]
  /** What else changes the cost: sentences. */
  readonly besides?: string
}

/**
 * `measured`: a test counts it at the peer. `machine`: the kind reads this machine, and sends nothing to a server.
 * `unknown`: why svc cannot state it.
 */
export type KindCost = MeasuredCost | { readonly machine: string } | { readonly unknown: string }

const cost = (connections: number, requests: number, signIns = 0): Cost => ({ connections, requests, signIns })

const nothing = cost(0, 0)
const addresses = 'A name with several addresses costs as much for each address that is tested.'
const http = 'HTTP requests'

/** Kind → what its runs cost. `test/kinds/costs*.test.ts` count each row at the peer. */
export const costs: Readonly<Record<KindName, KindCost>> = {
  configuration: { machine: 'It reads svc.yaml.' },
  exec: { unknown: 'It runs a program of yours, and only that program determines what it sends.' },
  'file-age': { machine: 'It reads a file or a folder.' },
  heartbeat: { machine: 'It reads the store of svc.' },
  listening: { machine: 'It reads the ports of this machine.' },
  'mail-queue': { machine: 'It reads the queue of the mail server on this machine.' },
  process: { machine: 'It reads the processes of this machine.' },
  self: { machine: 'It reads its own process.' },
  service: { machine: 'It asks the service manager of this machine.' },
  'sign-in': { machine: 'It reads the store of svc.' },
  sqlite: { machine: 'It opens a file.' },
  deployment: {
    unit: http,
    Basic: nothing,
    Standard: nothing,
    Advanced: nothing,
    adds: [{ setting: 'url', from: 'Standard', connections: 1, requests: 1 }],
  },
  dns: {
    unit: 'queries',
    Basic: cost(1, 1),
    Standard: cost(1, 1),
    Advanced: cost(2, 2),
    adds: [{ setting: 'nameServers', each: true, from: 'Advanced', connections: 1, requests: 1 }],
    besides:
      'With type MX, NS or SRV, each host in the answer adds queries for its addresses. With type SOA or NS, each name server of the zone adds one query.',
  },
  ftp: {
    unit: 'commands',
    Basic: cost(1, 1),
    Standard: cost(1, 1),
    Advanced: cost(1, 1),
    adds: [
      { setting: 'username', from: 'Standard', connections: 2, requests: 8, signIns: 1 },
      { setting: 'folder', from: 'Advanced', connections: 1, requests: 6 },
      { setting: 'allowWrites', from: 'Advanced', connections: 5, requests: 17 },
    ],
    besides: 'Each listing and each file has a data connection, which is included.',
  },
  grpc: {
    unit: 'calls',
    Basic: cost(1, 0),
    Standard: cost(1, 1),
    Advanced: cost(1, 1),
    adds: [
      // Each service instead of the whole server.
      { setting: 'services', from: 'Standard', requests: -1 },
      { setting: 'services', each: true, from: 'Standard', requests: 1 },
      { setting: 'token', from: 'Standard', signIns: 1 },
    ],
    besides: `With a token, each call is a sign-in. ${addresses}`,
  },
  host: {
    unit: 'queries to the time server',
    Basic: nothing,
    Standard: nothing,
    Advanced: nothing,
    adds: [{ setting: 'clock', from: 'Standard', connections: 1, requests: 1 }],
  },
  http: {
    unit: http,
    Basic: cost(1, 1),
    Standard: cost(1, 1),
    Advanced: cost(1, 1),
    adds: [
      { setting: 'token', from: 'Standard', signIns: 1 },
      { setting: 'password', from: 'Standard', signIns: 1 },
    ],
    besides: `Each link that \`links\` selects adds one connection and one request to the server that it names, and so does each redirect. With \`method: POST\`, a Basic run connects and sends no request. From Standard on, ${addresses}`,
  },
  'http-steps': {
    unit: http,
    Basic: nothing,
    Standard: nothing,
    Advanced: nothing,
    adds: [
      { setting: 'steps', each: true, from: 'Advanced', connections: 1, requests: 1 },
      { setting: 'steps', each: true, where: 'signIn', from: 'Advanced', signIns: 1 },
      { setting: 'cleanup', each: true, from: 'Advanced', connections: 1, requests: 1 },
    ],
    besides:
      'A step with `until` repeats its request until the condition holds. A step with `ftp` signs in to an FTP server.',
  },
  ldap: {
    unit: 'operations',
    Basic: cost(1, 1),
    Standard: cost(1, 4),
    Advanced: cost(1, 4),
    adds: [
      { setting: 'username', from: 'Standard', requests: 1, signIns: 1 },
      { setting: 'entry', from: 'Advanced', requests: 1 },
      { setting: 'refusesWrongPassword', from: 'Advanced', connections: 2, requests: 2, signIns: 2 },
    ],
    besides:
      'The figures are those of OpenLDAP; checks of Active Directory and 389-ds add searches. Comparing with a provider adds a connection and a sign-in there.',
  },
  mongo: {
    unit: 'messages',
    Basic: cost(2, 6, 1),
    Standard: cost(2, 8, 1),
    Advanced: cost(2, 14, 1),
    besides:
      'One of the two connections belongs to the driver, which observes the node. Without a user in `url`, there is no sign-in. The figures are those of a simulated primary.',
  },
  mysql: {
    unit: 'statements',
    Basic: cost(1, 1, 1),
    Standard: cost(1, 16, 1),
    Advanced: cost(1, 24, 1),
    adds: [
      { setting: 'queries', from: 'Standard', requests: 1 },
      { setting: 'queries', each: true, from: 'Standard', requests: 3 },
    ],
    besides:
      'The figures are those of MariaDB; the number of statements varies with the release and the role of the server. On a replica, comparing the transactions adds a connection and a sign-in at the source.',
  },
  oidc: {
    unit: http,
    Basic: cost(1, 1),
    Standard: cost(3, 3),
    Advanced: cost(3, 3),
    adds: [{ setting: 'clientId', from: 'Advanced', signIns: 1 }],
    besides:
      'Each request has its own connection. Introspection, a user token and a wrong secret add requests of their own.',
  },
  pgbouncer: {
    unit: 'statements',
    Basic: cost(1, 1, 1),
    Standard: cost(1, 5, 1),
    Advanced: cost(1, 5, 1),
  },
  ping: {
    unit: 'packets',
    Basic: cost(1, 5),
    Standard: cost(1, 5),
    Advanced: cost(1, 5),
    adds: [
      { setting: 'count', from: 'Basic', requests: -5 },
      { setting: 'count', each: true, from: 'Basic', requests: 1 },
    ],
    besides: addresses,
  },
  postgres: {
    unit: 'statements',
    Basic: cost(1, 1, 1),
    Standard: cost(1, 13, 1),
    Advanced: cost(1, 34, 1),
    adds: [
      { setting: 'queries', from: 'Standard', requests: 1 },
      { setting: 'queries', each: true, from: 'Standard', requests: 4 },
    ],
    besides: 'The number of statements varies with the release and the role of the server.',
  },
  rabbitmq: {
    unit: http,
    Basic: cost(1, 1),
    Standard: cost(5, 5, 4),
    Advanced: cost(5, 5, 4),
    adds: [{ setting: 'queues', each: true, from: 'Standard', connections: 1, requests: 1, signIns: 1 }],
    besides: 'Each request has its own connection, and each but the first signs in.',
  },
  redis: {
    unit: 'commands',
    Basic: cost(1, 1),
    Standard: cost(1, 2),
    Advanced: cost(1, 12),
    adds: [
      { setting: 'password', from: 'Basic', requests: 1, signIns: 1 },
      { setting: 'queues', each: true, from: 'Standard', requests: 1 },
    ],
    besides: 'Clusters and Sentinels have commands of their own.',
  },
  sftp: {
    unit: 'SFTP requests',
    Basic: cost(1, 0),
    Standard: cost(1, 0),
    Advanced: cost(1, 0),
    adds: [
      { setting: 'username', from: 'Standard', requests: 5, signIns: 1 },
      { setting: 'folder', from: 'Advanced', requests: 4 },
      { setting: 'allowWrites', from: 'Advanced', requests: 30 },
    ],
    besides: 'A folder with many files adds requests.',
  },
  smtp: {
    unit: 'commands',
    Basic: cost(1, 1),
    Standard: cost(1, 6),
    Advanced: cost(1, 9),
    adds: [{ setting: 'username', from: 'Standard', requests: 1, signIns: 1 }],
  },
  sqlserver: {
    unit: 'statements',
    Basic: cost(1, 2, 1),
    Standard: cost(1, 9, 1),
    Advanced: cost(1, 18, 1),
    adds: [
      { setting: 'queries', from: 'Standard', requests: 1 },
      { setting: 'queries', each: true, from: 'Standard', requests: 2 },
    ],
    besides:
      'The figures are those of a simulated server; the number of statements varies with the release of the server.',
  },
  svc: {
    unit: http,
    Basic: cost(1, 1),
    Standard: cost(1, 1),
    Advanced: cost(1, 1),
    adds: [{ setting: 'token', from: 'Standard', signIns: 1 }],
    besides: 'What the other svc then sends to its own servers is not included.',
  },
  tcp: {
    unit: 'messages',
    Basic: cost(1, 0),
    Standard: cost(1, 0),
    Advanced: cost(1, 0),
    adds: [{ setting: 'send', from: 'Basic', requests: 1 }],
    besides: addresses,
  },
  tls: {
    unit: 'messages',
    Basic: cost(1, 0),
    Standard: cost(1, 0),
    Advanced: cost(1, 0),
    besides: addresses,
  },
}

const order: Readonly<Record<ExecutionMode, number>> = { Basic: 0, Standard: 1, Advanced: 2 }

/** How often a setting adds its cost: 0 if it is not given. */
function timesOf({ setting, each, where }: AddedCost, settings: Readonly<Record<string, unknown>>): number {
  const value = settings[setting]
  if (value === undefined || value === false) return 0
  if (!Array.isArray(value)) return each && typeof value === 'number' ? value : 1
  const items = where === undefined ? value : value.filter((item) => item[where] === true)
  return each ? items.length : Math.min(items.length, 1)
}

/**
 * What a run of a kind costs the watched server when nothing fails, at one address. `settings` are the parsed settings of
 * the monitor. Undefined if svc cannot state it: never take that for nothing. Needs no module of the kind.
 */
export function costOf(
  kind: KindName,
  mode: ExecutionMode,
  settings: Readonly<Record<string, unknown>> = {},
): Cost | undefined {
  const row = costs[kind]
  if ('unknown' in row) return undefined
  if ('machine' in row) return nothing
  const due = (row.adds ?? []).filter(({ from }) => order[mode] >= order[from])
  const sum = (of: keyof Cost): number =>
    due.reduce((total, one) => total + (one[of] ?? 0) * timesOf(one, settings), row[mode][of])
  return { connections: sum('connections'), requests: sum('requests'), signIns: sum('signIns') }
}
