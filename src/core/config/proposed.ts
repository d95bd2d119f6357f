import type { Proposal, ProposedEntry } from '../checks/discover/index.ts'

/**
 * A svc.yaml with all proposed monitors, by server type. What does not work as it is becomes a comment with the reason.
 * Deeper monitors that need an account follow as comments, ready to replace the ones above.
 */
export async function proposedFile(proposals: readonly Proposal[], head: readonly string[]): Promise<string> {
  const { stringify } = await import('yaml')
  const item = (entry: ProposedEntry): readonly string[] =>
    stringify([entry], { flowCollectionPadding: false, lineWidth: 0 }).trimEnd().split('\n')
  const works = proposals.some(({ problem }) => problem === undefined)
  const lines = works ? ['types:'] : ['types: {}']
  for (const type of new Set(proposals.map((proposal) => proposal.type))) {
    const ofType = proposals.filter((proposal) => proposal.type === type)
    // A type without any monitor would be a mistake.
    lines.push(`${ofType.some(({ problem }) => problem === undefined) ? '  ' : '  # '}${type}:`)
    for (const { entry, note, deeper, problem } of ofType) {
      if (note !== undefined) lines.push(`    # ${note}`)
      if (problem !== undefined) lines.push(`    # Does not work as it is: ${problem}`)
      lines.push(...item(entry).map((line) => (problem === undefined ? `    ${line}` : `    # ${line}`)))
      if (deeper) {
        lines.push('      # With an account, replace the entry above with this deeper check.')
        lines.push(...item(deeper).map((line) => `    # ${line}`))
      }
    }
  }
  return `${[...head.map((line) => `# ${line}`.trimEnd()), ...lines].join('\n')}\n`
}
