/** The configuration, svc.yaml: how it is found and read, and its JSON Schema. */
export { commonSettings } from './common.ts'
export { type ConfigCandidate, candidates, type WhereOptions } from './find.ts'
export type { Fleet, FleetServer } from './fleet.ts'
export type { ReloadedIncludes } from './include.ts'
export { type Config, type InvalidEntry, type LoadedConfig, type LoadOptions, linkMistake, loadConfig } from './load.ts'
// Loaded on demand: reading a configuration does not need them.
export async function configSchema(): Promise<object> {
  const [{ configSchema }, { withSharedShapes }] = await Promise.all([
    import('./schema.ts'),
    import('./shared-shapes.ts'),
  ])
  return withSharedShapes(await configSchema())
}
/** The JSON Schema of a fleet file. */
export async function fleetSchema(): Promise<object> {
  const [{ settingsSchema }, { fleetSettings }] = await Promise.all([import('./schema.ts'), import('./fleet.ts')])
  const description = 'The servers that svc health --fleet checks'
  const $schema = 'https://json-schema.org/draft/2020-12/schema'
  return { $schema, title: 'A fleet file of svc', description, ...settingsSchema(fleetSettings) }
}
export const loadReading = async () => (await import('./preload.ts')).preloadReading
export const loadRestartSettings = async () => (await import('./restart.ts')).restartSettings
export const loadEdit = () => import('./edit.ts')
export const loadImport = () => import('./import/index.ts')
export const loadRehearsal = () => import('./rehearsal.ts')
export const loadFleetFile = () => import('./fleet.ts')
export const proposals = () => import('./proposed.ts')
export const loadDriverNeeds = () => import('./driver-needs.ts')
export const loadScheduleLoad = () => import('./schedule-load.ts')
export { accountProblem, proxyProblem, serveSettings } from '../protocol/service/serve-settings.ts'
export type { AuthConfig } from './auth.ts'
export type { ServeConfig } from './load.ts'
export type { NotifyConfig } from './notify.ts'
export type { TypeConfig, Types } from './types.ts'
