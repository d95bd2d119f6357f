/** Requests each path 20 times, one after the other, and gives a line of a table for each: bytes, median and maximum. */
export async function timesOf(what: string, url: string, paths: readonly string[]): Promise<string> {
  const lines: string[] = []
  for (const path of paths) {
    const times: number[] = []
    let bytes = 0
    for (let at = 0; at < 20; at += 1) {
      const began = performance.now()
      const answer = await fetch(`${url}${path}`)
      bytes = (await answer.arrayBuffer()).byteLength
      if (!answer.ok) throw new Error(`${path} answered ${answer.status}`)
      times.push(performance.now() - began)
    }
    const [first = 0] = times
    times.sort((one, other) => one - other)
    const ms = (value: number | undefined): string => `${(value ?? 0).toFixed(0)} ms`
    lines.push(
      `| ${what} | \`${path}\` | ${(bytes / 1_000).toFixed(0)} kB | ${ms(first)} | ${ms(times[10])} | ${ms(times.at(-1))} |\n`,
    )
  }
  return lines.join('')
}
