export * from './assemble.ts'
export type { PlanChanges } from './changes.ts'
export * from './describe.ts'
export * from './preload.ts'

export const loadPlanChanges = () => import('./changes.ts')
export const loadStoredMonitors = () => import('./stored.ts')
