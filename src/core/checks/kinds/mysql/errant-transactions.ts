import { showDuration } from '../../../base/format.ts'
import { hostPort } from '../../../base/net/connect.ts'
import { ProbeError } from '../../../base/probe-error.ts'
import type { Secret } from '../../../base/settings/index.ts'
import {
  connectDatabase,
  type DatabaseConnection,
  databaseTarget,
  onDatabase,
  type TlsSetting,
  text,
} from '../../database/index.ts'
import { type CheckContext, fail, notChecked, ObservationError, ok, type Result, warn } from '../../engine/index.ts'
import { byName } from './checks.ts'
import { openMysql } from './driver.ts'

/** Characters of a set of transactions. A longer one does not fit in a statement that others may see in a list. */
const maxSet = 65_536
const shownSet = 200
/** Milliseconds for the sign-in at the source and the comparison: a source that hangs must not take the whole run. */
const maxSourceMs = 5_000

/** The transactions of a server, as MySQL (`uuid:1-5`) or MariaDB (`0-1-100`, the last of each server) names them. */
export type Transactions =
  | { readonly form: 'mysql' | 'mariadb'; readonly set: string }
  | { readonly form: 'unknown'; readonly why: string }

/** The settings of the kind that also hold for the second connection. */
type SignInSettings = { readonly password?: Secret | undefined; readonly tls?: TlsSetting | undefined }

export const errantTransactions = onDatabase({
  depth: 'Advanced',
  results: { 'errant transactions': 'With `source`: a replica has no transactions that its source lacks' },
  settings: {
    source: {
      type: 'url',
      protocols: ['mysql', 'mariadb'],
      doc: 'mysql://user@host:port/ of the source of this replica, to compare their transactions (GTIDs). svc signs in there with the same password and settings of TLS; a password from the keychain is bound to one server and is not sent there',
    },
  },
  when: ['source'],
  // Waits for another server.
  last: true,
  async observe({ ask }, settings, context) {
    const { source = '' } = settings
    const own = await readTransactions(ask)
    if (own.form === 'unknown') return { own, source: own, errant: '' }
    return await atSource(source, settings as SignInSettings, context, async (other) => {
      // Read after the own ones, so that it lacks none of those that were replicated.
      const theirs = await readTransactions(other.ask)
      return { own, source: theirs, errant: await errantOf(own, theirs, other.ask) }
    })
  },
  evaluate: ({ own, source, errant }): Result<'errant transactions'> => {
    const check = 'errant transactions'
    if (own.form === 'unknown') return notChecked(check, 'missing', `this server ${own.why}`)
    if (source.form === 'unknown') return notChecked(check, 'missing', `the source ${source.why}`)
    if (own.form !== source.form) {
      return fail(
        check,
        'data',
        'one of replica and source is MySQL and the other MariaDB: their transactions cannot be compared',
      )
    }
    if (errant === '') return ok(check, 'the source has all transactions of this replica')
    const details = [
      'they were written here, and not at the source: after a change of roles, replication stops or the data differ',
    ]
    return warn(check, `the source lacks transactions of this replica: ${errant}`, { details })
  },
})

/** Why svc cannot sign in to the source, or undefined. Throws like `databaseTarget`. */
export function sourceProblem({ source: url, ...settings }: SignInSettings & { readonly source?: string | undefined }) {
  if (url === undefined) return undefined
  databaseTarget({ ...settings, url }, mysqlPort, 'source')
  return settings.password?.origin.startsWith('{keychain')
    ? 'the setting source needs a password from a file or a variable: one from the keychain is bound to one server'
    : undefined
}

const mysqlPort = 3_306

/** Signs in to the source with the account of its url. Errors have the address of the source. */
async function atSource<T>(
  url: string,
  settings: SignInSettings,
  context: CheckContext,
  read: (source: DatabaseConnection) => Promise<T>,
): Promise<T> {
  const { password, tls } = settings
  const target = databaseTarget({ url, password, tls }, mysqlPort, 'source')
  const [ip = target.host] = await context.resolve(target.host)
  const address = hostPort(ip, target.port)
  const ms = Math.min(maxSourceMs, context.msLeft() / 2)
  const limit = AbortSignal.timeout(ms)
  const signal = AbortSignal.any([context.signal, limit])
  try {
    const at = { ip, port: target.port, address, signal, step: context.step, commit: () => {} }
    const source = await connectDatabase(openMysql, { at, context, target })
    try {
      return await read(source)
    } finally {
      await source.close()
    }
  } catch (error) {
    const isLate = limit.aborted && !context.signal.aborted
    const late = new ProbeError('timeout', `the source ${address} has not answered within ${showDuration(ms)}`)
    throw new ObservationError(isLate ? late : error, { address })
  }
}

async function readTransactions(ask: DatabaseConnection['ask']): Promise<Transactions> {
  const variables = byName(
    await ask(`SHOW GLOBAL VARIABLES WHERE Variable_name IN
      ('gtid_executed', 'gtid_mode', 'gtid_binlog_state', 'log_bin')`),
  )
  const setOf = (name: string): string => text(variables, name, maxSet + 1).replaceAll(/\s/g, '')
  const isMariadb = 'gtid_binlog_state' in variables
  if (text(variables, 'log_bin') !== 'ON') return { form: 'unknown', why: 'writes no binary log' }
  if (!isMariadb && text(variables, 'gtid_mode') !== 'ON') return { form: 'unknown', why: 'has gtid_mode off' }
  const set = setOf(isMariadb ? 'gtid_binlog_state' : 'gtid_executed')
  if (!/^[\w:,-]*$/.test(set) || set.length > maxSet)
    return { form: 'unknown', why: 'has too many transactions to compare' }
  return { form: isMariadb ? 'mariadb' : 'mysql', set }
}

async function errantOf(own: Transactions, source: Transactions, ask: DatabaseConnection['ask']): Promise<string> {
  if (own.form === 'unknown' || own.form !== source.form) return ''
  if (own.form === 'mariadb') return errantOfMariadb(own.set, source.set)
  const [row] = await ask(`SELECT GTID_SUBTRACT('${own.set}', @@GLOBAL.gtid_executed) AS errant`)
  return text(row, 'errant', shownSet)
}

/** Of each domain and server, MariaDB reports the last transaction: `0-1-100,0-2-7`. */
export function errantOfMariadb(own: string, source: string): string {
  const last = (set: string): Map<string, number> =>
    new Map(
      set
        .split(',')
        .filter(Boolean)
        .map((one) => [one.slice(0, one.lastIndexOf('-')), Number(one.slice(one.lastIndexOf('-') + 1))]),
    )
  const theirs = last(source)
  return [...last(own)]
    .filter(([server, number]) => number > (theirs.get(server) ?? 0))
    .map(([server, number]) => `${server}-${number}`)
    .join(',')
    .slice(0, shownSet)
}
