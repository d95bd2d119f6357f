export * from './assemble.ts'
export * from './describe.ts'
export * from './preload.ts'

export const loadCosts = () => import('./costs.ts')
export const loadStoredMonitors = () => import('./stored.ts')
