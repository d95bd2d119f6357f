export * from './assemble.ts'
export type { PlanChanges } from './changes.ts'
export * from './describe.ts'
export type { Affected } from './impact.ts'
export * from './preload.ts'
export const loadImpact = () => import('./impact.ts')
export const loadPlanChanges = () => import('./changes.ts')
export const loadTypeFor = () => import('./type-for.ts')
export const loadStoredMonitors = () => import('./stored.ts')
