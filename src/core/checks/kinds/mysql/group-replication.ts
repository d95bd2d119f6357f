import { count } from '../../../base/format.ts'
import { type DatabaseConnection, figure, onDatabase, type Row, text } from '../../database/index.ts'
import { fail, notChecked, ok, type Result, warn } from '../../engine/index.ts'
import { byName } from './checks.ts'

export const mayReadGroup = 'where group replication is set up: GRANT SELECT ON performance_schema.* TO <account>'

type Member = ReturnType<typeof memberOf>

/** Reads the group of a server. Reads no table, and needs no privilege, where group replication is not set up. */
export async function readGroup({ ask }: DatabaseConnection) {
  const variables = byName(
    await ask(`SHOW GLOBAL VARIABLES WHERE Variable_name IN
      ('group_replication_group_name', 'super_read_only', 'server_uuid', 'max_connections')`),
  )
  const isSetUp = text(variables, 'group_replication_group_name') !== ''
  const uuid = text(variables, 'server_uuid')
  const rows = isSetUp
    ? await ask(`SELECT member_id AS id, member_host AS host, member_port AS port, member_state AS state,
        member_role AS role FROM performance_schema.replication_group_members ORDER BY member_host, member_port`)
    : []
  return {
    /** Whether the server answered at all: every server has max_connections. */
    answered: figure(variables, 'max_connections') !== undefined,
    /** True if this server is set up as a member of a group. */
    isSetUp,
    isReadOnly: text(variables, 'super_read_only') === 'ON',
    /** The members as this server sees them. */
    members: rows.map((row) => memberOf(row, uuid)),
  }
}

const memberOf = (row: Row, uuid: string) => ({
  /** `db2:3306`. */
  name: `${text(row, 'host') || '?'}:${text(row, 'port')}`,
  // A server that has not joined since it started has no id yet.
  isOwn: text(row, 'id') === uuid || text(row, 'id') === '',
  /** `ONLINE`, `RECOVERING`, `OFFLINE`, `ERROR`, `UNREACHABLE`. */
  state: text(row, 'state'),
  /** `PRIMARY`, `SECONDARY`; empty outside the group. */
  role: text(row, 'role'),
})

/** The members that the group can count on. */
export const isReachable = ({ state }: Member): boolean => state === 'ONLINE' || state === 'RECOVERING'

export const groupReplication = onDatabase({
  // In Standard, because SELECT 1 passes on a member whose group lets no write through.
  depth: 'Standard',
  results: {
    'group replication':
      'A member of a group is online, and its group has a majority; omitted without group replication',
  },
  privilege: mayReadGroup,
  observe: (connection) => readGroup(connection),
  evaluate: ({ answered, isSetUp, isReadOnly, members }): Result<'group replication'> | [] => {
    const check = 'group replication'
    if (!answered) return notChecked(check, 'missing', 'the server does not report whether it is a member of a group')
    if (!isSetUp) return []
    const own = members.find(({ isOwn }) => isOwn)
    const state = own?.state || 'OFFLINE'
    const reachable = members.filter(isReachable)
    const lost = members.filter((one) => !isReachable(one))
    const details = members.map((one) => `${one.name}: ${[one.state, one.role].filter(Boolean).join(', ')}`)
    const measurement = { value: reachable.length, unit: 'count' } as const
    const finding = { details, measurement }
    if (!own || !isReachable(own)) {
      const writes = isReadOnly ? '' : ', and accepts writes that no other member gets'
      return fail(check, 'data', `this member is ${state}: it does not belong to its group${writes}`, finding)
    }
    const of = `${reachable.length} of ${count(members.length, 'member')}`
    if (reachable.length * 2 <= members.length) {
      return fail(check, 'data', `the group has lost its majority, and every write waits: ${of} reachable`, finding)
    }
    if (state === 'RECOVERING') return warn(check, `this member is RECOVERING: it takes over what it missed`, finding)
    if (lost.length > 0) {
      const names = lost.map((one) => `${one.name} is ${one.state}`).join(', ')
      return warn(check, `${of} reachable: ${names}`, finding)
    }
    return ok(check, `${state}, ${own.role || 'without a role'} of ${count(members.length, 'member')}`, finding)
  },
})
