/**
 * Bytes ↔ DTOs: formats, negotiation, query and form binding, error bodies. Depends on the protocol but on no
 * transport.
 */
import { bodyReaders } from './body.ts'
import type { Format, FormatName } from './format.ts'
import { json } from './json.ts'
import { jsv } from './jsv.ts'

/** Format name → its loader. Loaded lazily, so that JSON requests do not load the CSV parser. */
export const formats: Readonly<Record<FormatName, () => Promise<Format>>> = {
  json: async () => json,
  csv: async () => (await import('./csv.ts')).csv,
  jsv: async () => jsv,
}

/** Loads all formats and body readers. */
export const preloadFormats = async (): Promise<void> => {
  await Promise.all([...Object.values(formats), ...Object.values(bodyReaders)].map((load) => load()))
}

/** Reads CSV files with several rows, as people keep them. Loaded on first use, like the CSV format. */
export const csvTables = (): Promise<typeof import('./csv.ts')> => import('./csv.ts')

export { decodeAnswer, errorAnswer, errorResponse } from './answer.ts'
export { type BodyRules, type BodyValues, readBatch, readBody } from './body.ts'
export {
  attachment,
  type Format,
  type FormatName,
  jsonpContentType,
  type Trailing,
  type WireValues,
} from './format.ts'
export { encodeJson } from './json.ts'
export { withinLimits } from './limits.ts'
export { type FormatRequest, formatNamed, jsonp, type Negotiated, negotiate } from './negotiate.ts'
export {
  bind,
  encodeQuery,
  merge,
  type Pair,
  parsePairs,
  refuseContradictions,
  refuseInQuery,
  requireFields,
  type Sources,
} from './query.ts'
export { decodeRun, encodeRun, isRunType } from './run-document.ts'
export { isoDate, OffsetDate, readDate, readDuration, writeDuration } from './scalars.ts'
