import { audit, holders, keys, sessions, users } from '../accounts/lists.ts'
import { heartbeats, receipts } from '../heartbeats/lists.ts'
import { findings, kinds, monitorProfiles, planChecks } from '../monitors/lists.ts'
import { fileRows, holdings, roleChanges } from '../roles/lists.ts'
import { configuration, installation, secrets, serverProfiles } from '../setup/lists.ts'

/** The fields of each command's records in a pipe, in order. */
export const recordFields: Readonly<Record<string, readonly string[]>> = {
  'users list': users.fields,
  'roles show': holdings.fields,
  'roles holders': holders.fields,
  'roles assign': roleChanges.fields,
  'roles assign --from-file': fileRows.fields,
  'sessions list': sessions.fields,
  'keys list': keys.fields,
  'audit list': audit.fields,
  heartbeat: receipts.fields,
  'heartbeats list': heartbeats.fields,
  'secrets list': secrets.fields,
  'monitors list': planChecks.fields,
  'monitors test': findings.fields,
  'monitors kinds': kinds.fields,
  'monitors profiles': monitorProfiles.fields,
  'profile list': serverProfiles.fields,
  'config list': configuration.fields,
  doctor: installation.fields,
}
