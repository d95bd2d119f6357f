import { count, showDuration } from '../../../base/format.ts'
import { quote } from '../../../base/net/text.ts'
import { figure, limitOnDatabase, text, truth } from '../../database/index.ts'
import { notChecked, ok, warn } from '../../engine/index.ts'
import { inMs } from './checks.ts'

const day = 86_400_000
const check = 'password expiry'

export const passwordExpiry = limitOnDatabase({
  depth: 'Standard',
  check,
  proves:
    'The password of the account remains valid long enough (VALID UNTIL), if the server asks for one, and that of no role that has sessions open has expired',
  setting: 'passwordExpiry',
  unit: 'duration',
  default: { warn: 14 * day, limit: day },
  doc: 'Minimum time until the password of the account expires',
  bound: 'atLeast',
  observe: async ({ ask, askedForPassword, user }, _, { date }) => {
    const rows = await ask(`SELECT rolname = session_user AS own, rolname AS name, sessions.count AS sessions,
        CASE WHEN isfinite(rolvaliduntil) THEN ${inMs('rolvaliduntil - clock_timestamp()')} END AS left
      FROM pg_roles AS r, LATERAL (SELECT count(*)::int FROM pg_stat_activity WHERE usesysid = r.oid) AS sessions
      WHERE rolname = session_user OR (rolcanlogin AND rolvaliduntil < clock_timestamp() AND sessions.count > 0)
      ORDER BY own DESC, name LIMIT 20`)
    const roles = rows.map((row) => ({
      isOwn: truth(row, 'own'),
      name: text(row, 'name'),
      sessions: figure(row, 'sessions') ?? 0,
      /** Undefined if it never expires. */
      leftMs: figure(row, 'left'),
    }))
    return {
      user,
      askedForPassword,
      now: date().getTime(),
      own: roles.find(({ isOwn }) => isOwn),
      expired: roles.filter(({ isOwn }) => !isOwn),
    }
  },
  evaluate: ({ user, askedForPassword, now, own, expired }, compare) => {
    const who = quote(user, 64)
    if (own === undefined) return notChecked(check, 'missing', 'the roles are not reported')
    const { leftMs } = own
    const [first, ...others] = expired.map(
      ({ name, sessions, leftMs: ms = 0 }) =>
        `the password of ${quote(name, 64)}, which has ${count(sessions, 'session')} open, expired ${showDuration(-ms)} ago`,
    )
    const mine = !askedForPassword
      ? ok(check, `the server asks ${who} for no password`)
      : leftMs === undefined
        ? ok(check, `the password of ${who} does not expire`)
        : compare({ what: `the password of ${who} expires in`, value: leftMs, at: new Date(now + leftMs) })
    if (first === undefined) return mine
    const details = [...others, 'its next sign-in with the password is refused: ALTER ROLE … VALID UNTIL']
    return [mine, { ...warn(check, first, { details }), subject: 'other roles' }]
  },
})
