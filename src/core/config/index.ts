/** The configuration, svc.yaml: where it is found, what it says, and the JSON Schema of it. */
export { commonSettings } from './common.ts'
export { type Candidate, candidates, type WhereOptions } from './find.ts'
export { type Config, type LoadOptions, loadConfig } from './load.ts'
/** Loaded when it is wanted: no configuration that is read needs it. */
export const proposals = () => import('./proposed.ts')
export { configSchema } from './schema.ts'
export { type ServeConfig, serveSettings } from './serve.ts'
export type { TypeConfig, Types } from './types.ts'
