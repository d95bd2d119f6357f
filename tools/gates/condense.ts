/** A dimension of a table: its name and all its values. */
export type Dimension = { readonly name: string; readonly values: readonly string[] }
/** Values of each dimension that all have one outcome in every combination. */
export type Box = { readonly values: readonly (readonly string[])[]; readonly outcome: string }

/**
 * The table of all combinations with few rows: combinations with the same outcome that differ in one dimension only
 * become one row. The rows are disjoint and contain every combination.
 */
export function condense(
  dimensions: readonly Dimension[],
  outcomeOf: (values: readonly string[]) => string,
): readonly Box[] {
  let boxes = combinationsOf(dimensions).map((values) => ({
    values: values.map((value) => [value]),
    outcome: outcomeOf(values),
  })) as readonly Box[]
  for (let before = Number.POSITIVE_INFINITY; boxes.length < before; ) {
    before = boxes.length
    for (let at = dimensions.length - 1; at >= 0; at -= 1) boxes = mergedAlong(boxes, at)
  }
  return boxes
}

function combinationsOf(dimensions: readonly Dimension[]): readonly (readonly string[])[] {
  const [first, ...rest] = dimensions
  if (!first) return [[]]
  const tails = combinationsOf(rest)
  return first.values.flatMap((value) => tails.map((tail) => [value, ...tail]))
}

/** Merges the boxes that differ in the dimension at this place alone. */
function mergedAlong(boxes: readonly Box[], at: number): readonly Box[] {
  const groups = Map.groupBy(boxes, ({ values, outcome }) => JSON.stringify([values.toSpliced(at, 1), outcome]))
  return [...groups.values()].map(([first, ...others]) => {
    const { values, outcome } = first as Box
    const all = [first as Box, ...others].flatMap((box) => box.values[at] ?? [])
    return { values: values.with(at, all), outcome }
  })
}
