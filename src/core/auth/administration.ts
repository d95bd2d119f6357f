import type { Admin, AuditFacts } from '../service.ts'
import type { AuditRow, Data } from '../store/index.ts'
import { keys } from './keys.ts'
import type { Passwords } from './passwords.ts'
import { findUser, userFacts, users } from './users.ts'

/** `svc users`, `keys`, `roles show`, `roles holders` and `audit`, over the store that `label` names. */
export function administration(given: {
  readonly label: string
  readonly data: (create: boolean) => Promise<Data>
  readonly passwords: Passwords
  readonly now: () => number
}): Omit<Admin, 'heartbeats'> {
  const store = (): Promise<Data> => given.data(false)
  return {
    store: given.label,
    users: users(given),
    keys: keys(store, given.now),
    roles: {
      show: async (userName) => userFacts(await findUser(await store(), userName)),
      holders: async (role) => (await (await store()).users.holders(role)).map(userFacts),
      names: async () => await (await store()).users.roleNames(),
    },
    audit: {
      list: async ({ limit, before }) => {
        const { audit } = await store()
        return (await audit.list(before === undefined ? { limit } : { limit, before })).map(auditFacts)
      },
    },
  }
}

const auditFacts = (row: AuditRow): AuditFacts => ({ ...row, at: new Date(row.at) })
