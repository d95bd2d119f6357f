type Part = { readonly remove?: () => unknown; readonly [Symbol.asyncDispose]?: () => PromiseLike<void> }

async function ends(part: unknown): Promise<boolean> {
  if (typeof part !== 'object' || part === null) return false
  const { remove, [Symbol.asyncDispose]: dispose } = part as Part
  await (remove ?? dispose)?.call(part)
  return remove !== undefined || dispose !== undefined
}

/** Ends a server or, where a fixture has several, each of them, the last first. */
export async function removed(server: unknown): Promise<void> {
  if (await ends(server)) return
  let count = 0
  for (const part of new Set(Object.values(server ?? {}).reverse())) if (await ends(part)) count += 1
  if (count === 0) throw new Error('nothing ends this server: it needs a stop of its own')
}
