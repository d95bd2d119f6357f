export type { RoleLists } from './change.ts'
export { assign, giveBack, unassign } from './change.ts'
