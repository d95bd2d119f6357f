import { quote } from '../../../base/net/text.ts'
import { figure, limitOnDatabase, text } from '../../database/index.ts'
import { ok } from '../../engine/index.ts'
import { milliseconds, ownGrantee } from './checks.ts'

const day = 86_400_000
const check = 'password expiry'

/** Whether a version is at least `major.minor`. */
const isAtLeast = (version: string, major: number, minor: number): boolean => {
  const [first = 0, second = 0] = version.split('.').map((part) => Number.parseInt(part, 10))
  return first > major || (first === major && second >= minor)
}

/** The statement for the seconds that the password of the own account remains valid: NULL is for ever. */
export function passwordStatement(version: string): string | undefined {
  if (/mariadb/i.test(version)) {
    // An account sees its own row.
    return isAtLeast(version.replace(/^5\.5\.5-/, ''), 11, 5)
      ? `SELECT TIMESTAMPDIFF(SECOND, NOW(), password_expiration_time) AS seconds
          FROM information_schema.users WHERE user IN (CURRENT_USER(), ${ownGrantee})`
      : undefined
  }
  const lifetime = 'COALESCE(password_lifetime, @@global.default_password_lifetime)'
  return isAtLeast(version, 5, 7)
    ? `SELECT IF(${lifetime} = 0, NULL,
          TIMESTAMPDIFF(SECOND, NOW(), password_last_changed + INTERVAL ${lifetime} DAY)) AS seconds
        FROM mysql.user WHERE CONCAT(user, '@', host) = CURRENT_USER()
          AND plugin IN ('mysql_native_password', 'sha256_password', 'caching_sha2_password')`
    : undefined
}

export const passwordExpiry = limitOnDatabase({
  depth: 'Standard',
  check,
  proves:
    'The password of the account remains valid long enough: on MySQL with the privilege, on MariaDB from 11.5 on; elsewhere svc learns of it when the sign-in is refused',
  setting: 'passwordExpiry',
  unit: 'duration',
  default: { warn: 14 * day, limit: day },
  doc: 'Minimum time until the password of the account expires',
  bound: 'atLeast',
  privilege: 'on MySQL: GRANT SELECT ON mysql.user TO <account>',
  optional: true,
  observe: async ({ ask, user }, _, { date }) => {
    const [server] = await ask('SELECT VERSION() AS version')
    const statement = passwordStatement(text(server, 'version'))
    const [row] = statement === undefined ? [] : await ask(statement)
    return { user, now: date().getTime(), isKnown: row !== undefined, leftMs: milliseconds(figure(row, 'seconds')) }
  },
  evaluate: ({ user, now, isKnown, leftMs: value }, compare) => {
    if (!isKnown) return []
    const who = quote(user, 64)
    if (value === undefined) return ok(check, `the password of ${who} does not expire`)
    return compare({ what: `the password of ${who} expires in`, value, at: new Date(now + value) })
  },
})
