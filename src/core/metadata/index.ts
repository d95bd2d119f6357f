/** The interface described: for people, for code generators, for ServiceStack tools. All of it is read off the protocol. */

export { openapi } from './openapi.ts'
export { appMetadata, typesMetadata } from './service-types.ts'
export type { Described, DescribedPage, DescribedReport } from './shapes.ts'
export { callerOf, interfaceTitle, rows, type Shape, shapes, usualVerb } from './shapes.ts'
export { typescript } from './typescript.ts'
