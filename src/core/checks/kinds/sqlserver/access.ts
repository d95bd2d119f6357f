import { sanitize } from '../../../base/net/text.ts'
import type { SettingsSpec, Values } from '../../../base/settings/index.ts'
import type { ExecutionMode } from '../../../protocol/index.ts'
import { type DatabaseConnection, figure, onDatabase, type Row } from '../../database/index.ts'
import { notChecked, type Result, type ResultsOf, warn } from '../../engine/index.ts'
import { UnreadableError } from './errors.ts'

/** The statements that let a login read the data of a check, given the bracketed name of the login. */
type Grant = (login: string) => string

const inMsdb = (login: string, table: string): string =>
  `USE msdb; CREATE USER ${login} FOR LOGIN ${login}; GRANT SELECT ON dbo.${table} TO ${login}`

export const grants = {
  databases: (login) => `GRANT VIEW ANY DATABASE TO ${login}`,
  serverState: (login) => `GRANT VIEW SERVER STATE TO ${login}`,
  definitions: (login) => `GRANT VIEW SERVER STATE TO ${login}; GRANT VIEW ANY DEFINITION TO ${login}`,
  backups: (login) => inMsdb(login, 'backupset'),
  jobs: (login) => `${inMsdb(login, 'sysjobs')}; GRANT SELECT ON dbo.sysjobservers TO ${login}`,
} as const satisfies Readonly<Record<string, Grant>>

/** Replaces the observation of a check whose data the account, the edition or the version does not provide. */
class Unreadable {
  readonly reason: string
  readonly details: readonly string[] | undefined
  constructor({ why, message }: UnreadableError, grant: Grant, user: string) {
    this.reason = message
    this.details = why === 'permission' ? [grant(`[${sanitize(user, 64).replaceAll(']', ']]')}]`)] : undefined
  }
}

/**
 * Declares a check of data that not every login, edition or version provides. Where the data is missing, the first
 * result of the check is a warning with the statements that grant access: neither a failure of the database nor a
 * silent ok.
 */
export const onSqlserver = <
  const Name extends string,
  Observation,
  const Spec extends SettingsSpec = Record<never, never>,
>({
  grant,
  observe,
  evaluate,
  ...declaration
}: {
  readonly depth: ExecutionMode
  readonly results: Readonly<Record<Name, string>>
  readonly settings?: Spec
  readonly grant: Grant
  /** Throws UnreadableError if the server does not provide the data. */
  readonly observe: (connection: DatabaseConnection, now: Date) => Promise<Observation>
  readonly evaluate: (observation: NoInfer<Observation>, settings: Values<NoInfer<Spec>>) => ResultsOf<NoInfer<Name>>
}) =>
  onDatabase({
    ...declaration,
    privilege: grant('<login>'),
    observe: async (connection, _, { date }): Promise<Observation | Unreadable> => {
      try {
        return await observe(connection, date())
      } catch (error) {
        if (error instanceof UnreadableError) return new Unreadable(error, grant, connection.user)
        throw error
      }
    },
    evaluate: (observation, settings): ResultsOf<Name> => {
      if (!(observation instanceof Unreadable)) return evaluate(observation, settings)
      const [check = ''] = Object.keys(declaration.results)
      const { reason, details } = observation
      // Data that the edition or version does not provide is a warning too: no GRANT would help, nothing is broken.
      const result: Result = details
        ? notChecked(check, 'permission', reason, { details })
        : warn(check, `not checked: ${reason}`)
      return result as unknown as ResultsOf<Name>
    },
  })

/** For views that, without a permission, silently return nothing or only the account's own rows. */
export function requirePermission(row: Row | undefined, permission: string): void {
  if (figure(row, 'may') === 1) return
  throw new UnreadableError('permission', `this account sees only part of the data without ${permission}`, [])
}
export const mayState = "HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW SERVER STATE')"

/** The counters are missing if they could not be set up when the server was installed. */
export function requireCounters(rows: readonly Row[]): readonly Row[] {
  if (rows.length > 0) return rows
  const message = 'the performance counters of this server are empty (lodctr /R rebuilds them)'
  throw new UnreadableError('absent', message, [])
}
