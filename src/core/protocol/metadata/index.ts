/**
 * Descriptions of the interface for people, code generators and ServiceStack tools. All of it derives from the
 * protocol.
 */

export { type Language, type LanguageName, languageNames, languages } from './languages/index.ts'
export { openapi } from './openapi.ts'
export { openapiAll } from './openapi-all.ts'
export type { Described, DescribedPage, DescribedReport } from './schemas.ts'
export {
  callerOf,
  definitionsOf,
  interfaceTitle,
  parametersOf,
  rows,
  type Shape,
  shapes,
  usualVerb,
} from './schemas.ts'
export { appMetadata, typesMetadata } from './service-types.ts'
