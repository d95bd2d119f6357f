/**
 * Descriptions of the interface for people, code generators and ServiceStack tools. All of it derives from the
 * protocol.
 */

export { openapi } from './openapi.ts'
export { appMetadata, typesMetadata } from './service-types.ts'
export type { Described, DescribedPage, DescribedReport } from './shapes.ts'
export { callerOf, interfaceTitle, rows, type Shape, shapes, usualVerb } from './shapes.ts'
export { typescript } from './typescript.ts'
