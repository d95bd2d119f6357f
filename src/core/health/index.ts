/** Health: what runs for a server type and a mode, how it runs, and the answer made of it. */
export * from './answer.ts'
export * from './assemble.ts'
export { runInChild } from './child/index.ts'
export * from './describe.ts'
export type { Discovery, Proposal, ProposedEntry } from './discover/index.ts'
/** Loaded when it is wanted: no check needs it. */
export const discovery = () => import('./discover/index.ts')
export * from './engine.ts'
export * from './kinds.ts'
export * from './limits.ts'
export * from './monitor.ts'
export * from './monitors/index.ts'
export * from './net.ts'
export * from './notice.ts'
export * from './plan.ts'
/** Loaded when it is wanted: only `svc serve` loads everything. */
export const preloadHealth: typeof import('./preload.ts').preloadHealth = async (...given) =>
  await (await import('./preload.ts')).preloadHealth(...given)
export type { ProfileRow } from './profiles/describe.ts'
export const profileDescriptions = () => import('./profiles/describe.ts')
export * from './profiles/index.ts'
export * from './settings.ts'
export { isMap, type Raw, type SettingsContext, unknownKey } from './settings-at.ts'
export * from './settings-read.ts'
export { hostAndPort, type KeptSecret } from './settings-secret.ts'
export * from './settings-units.ts'
export * from './shared.ts'
export { listeningPorts } from './system/listening.ts'
export { stateMeter } from './system/state.ts'
