import { type CheckContext, type Result, warn } from '../engine/index.ts'
import { figure, type Row, truth } from './rows.ts'
import type { Ask } from './session.ts'

/** What the account that queries run as may do beyond reading. */
export type Account = {
  readonly see: 'account'
  /** In words that follow "queries run"; undefined where nothing was found. */
  readonly mighty: string | undefined
}

/** One cheap question of its privileges, and what the answer means. */
export type AccountQuestion = { readonly sql: string; readonly mighty: (rows: readonly Row[]) => string | undefined }

/** What undoes a transaction undoes no work of a function: hence the question for whom functions work. */
export const postgresAccount: AccountQuestion = {
  sql: 'SELECT rolsuper AS super, rolreplication AS replication FROM pg_roles WHERE rolname = current_user',
  mighty: ([row]) =>
    truth(row, 'super') ? 'as a superuser' : truth(row, 'replication') ? 'as an account with REPLICATION' : undefined,
}

/** The name of a user may hold an @, that of a host may not. */
export const mysqlAccount: AccountQuestion = {
  sql: `SELECT MAX(privilege_type = 'SUPER') AS super, MAX(privilege_type = 'FILE') AS file
    FROM information_schema.user_privileges
    WHERE grantee = CONCAT('''', LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER())
      - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1), '''@''',
      SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')`,
  mighty: ([row]) => {
    const has = ['super', 'file'].filter((name) => figure(row, name) === 1).map((name) => name.toUpperCase())
    if (has.length === 0) return undefined
    return `with the privilege${has.length > 1 ? 's' : ''} ${has.join(' and ')}`
  },
}

export const sqlserverAccount: AccountQuestion = {
  sql: "SELECT IS_SRVROLEMEMBER('sysadmin') AS sysadmin",
  mighty: ([row]) => (figure(row, 'sysadmin') === 1 ? 'as a sysadmin' : undefined),
}

/** A hint only: where the server does not say, nothing is made of that. The deadline is thrown. */
export const lookAtAccount =
  ({ signal }: Pick<CheckContext, 'signal'>, { sql, mighty }: AccountQuestion) =>
  async (ask: Ask): Promise<Account> => {
    try {
      return { see: 'account', mighty: mighty(await ask(sql)) }
    } catch (error) {
      if (signal.aborted) throw error
      return { see: 'account', mighty: undefined }
    }
  }

export function evaluateAccount({ mighty }: Account): readonly Result<'queries'>[] {
  if (mighty === undefined) return []
  return [
    warn('queries', `queries run ${mighty}: give svc an account that may only read`, {
      details: [
        'a transaction that cannot write keeps rows as they are, and no function from doing what its account may',
      ],
    }),
  ]
}
