/** The configuration, svc.yaml: where it is found, what it says, and the JSON Schema of it. */
export { commonSettings } from './common.ts'
export { type ConfigCandidate as Candidate, candidates, type WhereOptions } from './find.ts'
export { type Config, type LoadOptions, loadConfig } from './load.ts'
// Loaded when they are wanted: no configuration that is read needs them.
export const configSchema = async (): Promise<object> => (await import('./schema.ts')).configSchema()
export const proposals = () => import('./proposed.ts')
export { type ServeConfig, serveSettings } from './load.ts'
export type { TypeConfig, Types } from './types.ts'
