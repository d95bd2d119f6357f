import type { PlannedMonitor } from '../engine/index.ts'
import type { Problem } from '../settings/index.ts'
import type { MonitorRead } from './monitors.ts'

/**
 * Turns what `dependsOn` says into MonitorNames. A name that nobody has, that two have, or a circle
 * is a problem: the engine would otherwise wait for ever, or for nothing.
 */
export function resolveDependencies(reads: readonly MonitorRead[]): {
  readonly monitors: readonly PlannedMonitor[]
  readonly problems: readonly Problem[]
} {
  const problems: Problem[] = []
  const parents = reads.map(({ dependsOn }, index) => {
    const names = dependsOn.flatMap((written) => {
      const found = find(written, reads)
      if (found.length === 1) return found
      problems.push({ path: [index, 'dependsOn'], message: unclear(written, found, reads) })
      return []
    })
    return [...new Set(names)]
  })
  const monitors = reads.flatMap(({ monitor }, index) =>
    monitor ? [{ ...monitor, dependsOn: parents[index] ?? [] }] : [],
  )
  return { monitors, problems: [...problems, ...circles(reads, parents)] }
}

/** By MonitorName, else by a monitor's own name. Monitors that are wrong otherwise are found too. */
function find(written: string, reads: readonly MonitorRead[]): readonly string[] {
  const named = (by: (read: MonitorRead) => string | undefined): readonly string[] => [
    ...new Set(reads.flatMap((read) => (read.name !== undefined && by(read) === written ? [read.name] : []))),
  ]
  const full = named((read) => read.name)
  return full.length > 0 ? full : named((read) => read.plainName)
}

function unclear(written: string, found: readonly string[], reads: readonly MonitorRead[]): string {
  const quoted = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(' or ')
  if (found.length > 0) return `names ${JSON.stringify(written)}, which several are called: write ${quoted(found)}`
  const names = [...new Set(reads.flatMap((read) => (read.name === undefined ? [] : [read.name])))]
  return `names ${JSON.stringify(written)}, which is no monitor of this type: write ${quoted(names.slice(0, 8))}, or remove it`
}

/** One problem a circle, at the first of its members. */
function circles(reads: readonly MonitorRead[], parents: readonly (readonly string[])[]): readonly Problem[] {
  const done = new Set<string>()
  const problems: Problem[] = []
  const walk = (name: string, way: readonly string[]): void => {
    if (done.has(name)) return
    const start = way.indexOf(name)
    const index = reads.findIndex((read) => read.name === name)
    if (start >= 0) {
      const circle = [...way.slice(start), name].join(' → ')
      problems.push({ path: [index, 'dependsOn'], message: `goes in a circle (${circle}): remove one of these` })
      return
    }
    for (const parent of parents[index] ?? []) walk(parent, [...way, name])
    done.add(name)
  }
  for (const { name } of reads) if (name !== undefined) walk(name, [])
  return problems
}
