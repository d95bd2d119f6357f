import type { Proposal, ProposedEntry } from '../checks/discover/index.ts'
import type { ServerType } from '../protocol/index.ts'

/** Parts of a proposed file beside its monitors. */
export type ProposedParts = {
  /** The host block of a type. */
  readonly host?: { readonly type: ServerType; readonly settings: object } | undefined
  /** Lines before and after `types:`. */
  readonly before?: readonly string[]
  readonly after?: readonly string[]
}

/**
 * A svc.yaml with all proposed monitors, by server type. What does not work as it is becomes a comment with the reason.
 * Deeper monitors that need an account follow as comments, ready to replace the ones above.
 */
export async function proposedFile(
  proposals: readonly Proposal[],
  head: readonly string[],
  { host, before = [], after = [] }: ProposedParts = {},
): Promise<string> {
  const { stringify } = await import('yaml')
  const item = (entry: ProposedEntry): readonly string[] =>
    stringify([entry], { flowCollectionPadding: false, lineWidth: 0 }).trimEnd().split('\n')
  const works = host !== undefined || proposals.some(({ problem }) => problem === undefined)
  const lines = [...before, works ? 'types:' : 'types: {}']
  for (const type of new Set([...(host ? [host.type] : []), ...proposals.map((proposal) => proposal.type)])) {
    const ofType = proposals.filter((proposal) => proposal.type === type)
    const hasMonitors = ofType.some(({ problem }) => problem === undefined)
    const isMapped = host?.type === type
    // A type without any monitor would be a mistake.
    lines.push(`${hasMonitors || isMapped ? '  ' : '  # '}${type}:`)
    if (isMapped) lines.push('    host:', ...stringify(host.settings).trimEnd().split('\n').map(indented))
    if (isMapped && hasMonitors) lines.push('    monitors:')
    for (const { entry, note, deeper, problem } of ofType) {
      if (note !== undefined) lines.push(...note.split('\n').map((line) => `    # ${line}`))
      if (problem !== undefined) lines.push(`    # Does not work as it is: ${problem}`)
      lines.push(...item(entry).map((line) => (problem === undefined ? `    ${line}` : `    # ${line}`)))
      if (deeper) {
        lines.push('      # With an account, replace the entry above with this deeper check.')
        lines.push(...item(deeper).map((line) => `    # ${line}`))
      }
    }
  }
  return `${[...head.map((line) => `# ${line}`.trimEnd()), ...lines, ...after].join('\n')}\n`
}

const indented = (line: string): string => `      ${line}`
