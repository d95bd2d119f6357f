import { type Ask, figure, type Row, text } from '../../database/index.ts'
import { mayState, mustSee } from './look.ts'

const mayDefinition = "HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW ANY DEFINITION')"

export type Group = {
  readonly name: string
  /** The replica that is primary; empty when there is none. */
  readonly primary: string
  readonly role: string
  readonly health: string
  readonly sick: readonly string[]
}
export type Groups = { readonly see: 'groups'; readonly groups: readonly Group[] }
export async function lookAtGroups(ask: Ask): Promise<Groups> {
  const [server] = await ask(
    `SELECT CAST(SERVERPROPERTY('IsHadrEnabled') AS int) AS hadr, ${mayState} & ${mayDefinition} AS may`,
  )
  if (figure(server, 'hadr') !== 1) return { see: 'groups', groups: [] }
  mustSee(server, 'VIEW SERVER STATE and VIEW ANY DEFINITION')
  const groups = await ask(`SELECT TOP (100) g.name AS name, s.primary_replica AS holder, r.role_desc AS role,
      s.synchronization_health_desc AS health
    FROM sys.availability_groups AS g
      LEFT JOIN sys.dm_hadr_availability_group_states AS s ON s.group_id = g.group_id
      LEFT JOIN sys.dm_hadr_availability_replica_states AS r ON r.group_id = g.group_id AND r.is_local = 1
    ORDER BY g.name`)
  const sick = await ask(`SELECT TOP (100) g.name AS name, a.replica_server_name AS replica, d.name AS dbase,
      s.synchronization_state_desc AS state, s.suspend_reason_desc AS reason,
      s.log_send_queue_size AS toSend, s.redo_queue_size AS toRedo
    FROM sys.dm_hadr_database_replica_states AS s JOIN sys.availability_groups AS g ON g.group_id = s.group_id
      JOIN sys.availability_replicas AS a ON a.replica_id = s.replica_id
      LEFT JOIN sys.databases AS d ON d.database_id = s.database_id
    WHERE s.synchronization_health_desc <> 'HEALTHY' OR s.is_suspended = 1 ORDER BY g.name, a.replica_server_name`)
  return {
    see: 'groups',
    groups: groups.map((row) => ({
      name: text(row, 'name'),
      primary: text(row, 'holder'),
      role: text(row, 'role'),
      health: text(row, 'health'),
      sick: sick.filter((one) => text(one, 'name') === text(row, 'name')).map(sickOne),
    })),
  }
}

function sickOne(row: Row): string {
  const reason = text(row, 'reason')
  const state = `${text(row, 'dbase')} on ${text(row, 'replica')}: ${text(row, 'state')}`
  const queues = `${figure(row, 'toSend') ?? 0} KiB to send, ${figure(row, 'toRedo') ?? 0} KiB to redo`
  return `${state}${reason === '' ? '' : ` (suspended: ${reason})`}, ${queues}`
}
