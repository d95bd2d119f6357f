/**
 * Maximum levels of a JSON document from a peer. Functions that walk through a document call themselves once for each
 * level, and a document of a few kilobytes could otherwise exhaust the stack. The documents of services have about ten.
 */
export const deepestJson = 100

export type JsonRead =
  | { readonly json: unknown }
  /** `tooDeep`: more than the levels allowed, whether or not the rest is JSON. */
  | { readonly problem: 'invalid' | 'tooDeep' }

/** Parses a JSON text from a peer, with or without a byte order mark, up to `deepest` levels. Never throws. */
export function readJson(written: string, deepest = deepestJson): JsonRead {
  const text = written.startsWith('\uFEFF') ? written.slice(1) : written
  if (isDeeperThan(text, deepest)) return { problem: 'tooDeep' }
  try {
    return { json: JSON.parse(text) as unknown }
  } catch {
    return { problem: 'invalid' }
  }
}

/** Counts brackets outside of strings before the JSON is parsed. Takes one pass, whatever the input. */
function isDeeperThan(text: string, deepest: number): boolean {
  let depth = 0
  let quoted = false
  for (let at = 0; at < text.length; at += 1) {
    const one = text[at]
    if (quoted && one === '\\') at += 1
    else if (one === '"') quoted = !quoted
    else if (!quoted && (one === '[' || one === '{')) depth += 1
    else if (!quoted && (one === ']' || one === '}')) depth -= 1
    if (depth > deepest) return true
  }
  return false
}
