export type { RoleLists } from './change.ts'
export { assign, unassign } from './change.ts'
