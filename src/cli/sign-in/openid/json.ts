import { isObject, type JsonObject } from '../../../core/base/json.ts'

/** Bytes of a JSON document of a server or provider. Real ones have a few thousand. */
const maxBytes = 1024 * 1024

/** The JSON object in an answer; undefined when it is anything else, or too long. */
export function readJson(bytes: Uint8Array): JsonObject | undefined {
  if (bytes.length > maxBytes) return undefined
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
