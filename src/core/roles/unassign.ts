import { change, none, type RoleCall, type RoleLists } from './change.ts'

/** Removes roles and permissions from a user. Fault Conflict when the last Admin would lose Admin (O6). */
export const unassign = (call: RoleCall): Promise<RoleLists> => change(call, (named) => ({ add: none, remove: named }))
