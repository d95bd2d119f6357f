export { assign } from './assign.ts'
export type { RoleLists } from './change.ts'
export { unassign } from './unassign.ts'
