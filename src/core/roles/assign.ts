import { change, none, type RoleCall, type RoleLists } from './change.ts'

/** Adds roles and permissions to a user; what is held already stays where it is (O2, O3). */
export const assign = (call: RoleCall): Promise<RoleLists> => change(call, (named) => ({ add: named, remove: none }))
