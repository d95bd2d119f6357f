import { count } from '../../../base/format.ts'
import { type DatabaseConnection, figure, limitOnDatabase, onDatabase, type Row, text } from '../../database/index.ts'
import { fail, notChecked, ok, sharedRead, warn } from '../../engine/index.ts'

/** The line of PgBouncer's configuration that lets an account read the console. */
const privilege = 'stats_users = <account>'

export const version = onDatabase({
  depth: 'Basic',
  results: { console: 'The console answers SHOW VERSION' },
  gate: true,
  observe: async ({ ask }) => {
    const [row] = await ask('SHOW VERSION')
    return { version: text(row, 'version') }
  },
  evaluate: ({ version }) =>
    version === ''
      ? notChecked('console', 'missing', 'the console does not report its version')
      : ok('console', version, { facts: { version: version.replace(/^PgBouncer /, '') } }),
})

type Pool = Awaited<ReturnType<typeof pools>>[number]

const servers = ['sv_active', 'sv_idle', 'sv_used', 'sv_tested', 'sv_login'] as const

/** Undefined if one of the figures is missing. */
const sum = (row: Row, names: readonly string[]): number | undefined =>
  names.reduce<number | undefined>((total, name) => {
    const value = figure(row, name)
    return total === undefined || value === undefined ? undefined : total + value
  }, 0)

const pools = sharedRead('pools', 'The console answers SHOW POOLS', async ({ ask }: DatabaseConnection) => {
  const rows = await ask('SHOW POOLS')
  return rows
    .filter((row) => row['database'] !== 'pgbouncer')
    .map((row) => {
      const [seconds, micros] = [figure(row, 'maxwait'), figure(row, 'maxwait_us')]
      return {
        /** `database/user`. */
        name: `${text(row, 'database')}/${text(row, 'user')}`,
        waiting: figure(row, 'cl_waiting'),
        /** Milliseconds that the oldest waiting client has waited. */
        maxMs: seconds === undefined ? undefined : seconds * 1_000 + (micros ?? 0) / 1_000,
        /** Server connections of the pool, whatever they do. */
        servers: sum(row, servers),
      }
    })
})

const describePool = ({ name, waiting = 0, servers = 0 }: Pool): string =>
  `${name}: ${count(waiting, 'client')} waiting, ${count(servers, 'server connection')}`

/** The figure is missing in one of the pools. */
const isMissing = (pools: readonly Pool[], name: keyof Pool): boolean => pools.some((pool) => pool[name] === undefined)

const noPools = 'no client has connected since the start'

export const maxWait = limitOnDatabase({
  depth: 'Standard',
  check: 'wait time',
  proves: 'No client waits too long for a server connection, and every pool in use has one',
  setting: 'maxWait',
  unit: 'duration',
  default: { warn: 1_000, limit: 5_000 },
  doc: 'Maximum time that a client waits for a server connection (maxwait of SHOW POOLS)',
  privilege,
  observe: pools,
  evaluate: (pools, compare) => {
    const check = 'wait time'
    if (pools.length === 0) return ok(check, noPools)
    if (isMissing(pools, 'maxMs')) return notChecked(check, 'missing', 'SHOW POOLS does not report maxwait')
    if (isMissing(pools, 'servers')) {
      return notChecked(check, 'missing', 'SHOW POOLS does not report the server connections')
    }
    const [worst] = pools.toSorted((a, b) => (b.maxMs ?? 0) - (a.maxMs ?? 0))
    const result = compare({
      what: `longest wait for a server connection, in ${worst?.name}:`,
      value: worst?.maxMs,
      details: pools
        .filter(({ waiting = 0 }) => waiting > 0)
        .map(describePool)
        .slice(0, 20),
    })
    const without = pools.find((pool) => (pool.waiting ?? 0) > 0 && pool.servers === 0)
    if (!without || result.status === 'failed') return result
    const message = `${describePool(without)}: its server may be gone`
    return fail(check, 'refused', message, { measurement: result.measurement, details: result.details })
  },
})

export const waitingClients = limitOnDatabase({
  depth: 'Standard',
  check: 'waiting clients',
  proves: 'Few clients wait for a server connection',
  setting: 'waitingClients',
  unit: 'count',
  default: { warn: 10, limit: 100 },
  doc: 'Maximum number of clients of one pool that wait for a server connection (cl_waiting of SHOW POOLS)',
  privilege,
  observe: pools,
  evaluate: (pools, compare) => {
    const check = 'waiting clients'
    if (pools.length === 0) return ok(check, noPools)
    if (isMissing(pools, 'waiting')) return notChecked(check, 'missing', 'SHOW POOLS does not report cl_waiting')
    const [worst] = pools.toSorted((a, b) => (b.waiting ?? 0) - (a.waiting ?? 0))
    return compare({ what: `most clients wait in ${worst?.name}:`, value: worst?.waiting })
  },
})

export const databases = limitOnDatabase({
  depth: 'Standard',
  check: 'databases',
  proves: 'No database is paused or disabled, and connections remain for each',
  setting: 'databaseConnections',
  unit: 'percent',
  default: { warn: 80, limit: 95 },
  doc: 'Server connections of a database, in percent of its max_db_connections, if that is set',
  privilege,
  observe: async ({ ask }) =>
    (await ask('SHOW DATABASES'))
      .filter((row) => row['name'] !== 'pgbouncer')
      .map((row) => ({
        name: text(row, 'name'),
        paused: figure(row, 'paused'),
        disabled: figure(row, 'disabled'),
        current: figure(row, 'current_connections'),
        /** 0 means no limit. */
        max: figure(row, 'max_connections'),
      })),
  evaluate: (databases, compare) => {
    const check = 'databases'
    if (databases.length === 0) return warn(check, 'no database is configured')
    if (databases.some(({ paused, disabled }) => paused === undefined || disabled === undefined)) {
      return notChecked(check, 'missing', 'SHOW DATABASES does not report what is paused or disabled')
    }
    if (databases.some(({ current, max }) => current === undefined || max === undefined)) {
      return notChecked(check, 'missing', 'SHOW DATABASES does not report the connections of each database')
    }
    const stopped = databases.filter(({ paused, disabled }) => paused === 1 || disabled === 1)
    const used = databases
      .map(({ name, current = 0, max = 0 }) => ({ name, current, max, percent: (current / max) * 100 }))
      .filter(({ max }) => max > 0)
      .toSorted((a, b) => b.percent - a.percent)
    const [fullest] = used
    const result = fullest
      ? compare({
          what: `${fullest.name} has ${fullest.current} of ${fullest.max} connections:`,
          value: fullest.percent,
        })
      : ok(check, count(databases.length, 'database'))
    const [first] = stopped
    if (!first || result.status === 'failed') return result
    return warn(check, `${first.name} is ${first.paused === 1 ? 'paused' : 'disabled'}`, {
      measurement: result.measurement,
      details: stopped.slice(1, 20).map(({ name, paused }) => `${name} is ${paused === 1 ? 'paused' : 'disabled'}`),
    })
  },
})

export const clients = limitOnDatabase({
  depth: 'Standard',
  check: 'clients',
  proves: 'PgBouncer accepts more clients',
  setting: 'clients',
  unit: 'percent',
  default: { warn: 80, limit: 95 },
  doc: 'Clients, in percent of max_client_conn',
  privilege,
  observe: async ({ ask }) => {
    const [lists, config] = [await ask('SHOW LISTS'), await ask('SHOW CONFIG')]
    return {
      used: figure(
        lists.find((row) => row['list'] === 'used_clients'),
        'items',
      ),
      max: figure(
        config.find((row) => row['key'] === 'max_client_conn'),
        'value',
      ),
    }
  },
  evaluate: ({ used, max }, compare) => {
    const result = compare({
      what: `${used} of ${max} clients:`,
      figure: 'the number of clients',
      value: used === undefined || max === undefined ? undefined : (used / max) * 100,
    })
    return result.measurement === undefined || result.status === 'ok' ? result : { ...result, details: [listClients] }
  },
})

const listClients = 'next: SHOW CLIENTS in the console, which also answers beyond the limit, lists them'
