import { type Result, warn } from '../../engine/index.ts'
import { said } from '../../net/text.ts'
import type { Hidden, Need } from './look.ts'
import type { SqlserverSettings } from './settings.ts'

const grants: Readonly<Record<Need, (user: string) => string>> = {
  databases: (user) => `GRANT VIEW ANY DATABASE TO ${user}`,
  'server state': (user) => `GRANT VIEW SERVER STATE TO ${user}`,
  definitions: (user) => `GRANT VIEW SERVER STATE TO ${user}; GRANT VIEW ANY DEFINITION TO ${user}`,
  backups: (user) => inMsdb(user, 'backupset'),
  jobs: (user) => `${inMsdb(user, 'sysjobs')}; GRANT SELECT ON dbo.sysjobservers TO ${user}`,
}
const inMsdb = (user: string, table: string): string =>
  `USE msdb; CREATE USER ${user} FOR LOGIN ${user}; GRANT SELECT ON dbo.${table} TO ${user}`

/** Neither a failure of the database nor a silent green. */
export function evaluateHidden({ check, told, need }: Hidden, { url }: SqlserverSettings): Result {
  if (need === undefined) return warn(check, `not looked at: ${told}`)
  const login = said(decodeURIComponent(new URL(url).username), 64)
  return warn(check, `not looked at: ${told}`, { details: [grants[need](`[${login.replaceAll(']', ']]')}]`)] })
}
