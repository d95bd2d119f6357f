import type { Proposal, ProposedEntry } from '../discover/index.ts'

/**
 * A svc.yaml with all proposed monitors, by server type. Deeper monitors that need an account follow as comments, ready
 * to replace the ones above.
 */
export async function proposedFile(proposals: readonly Proposal[], head: readonly string[]): Promise<string> {
  const { stringify } = await import('yaml')
  const item = (entry: ProposedEntry): readonly string[] =>
    stringify([entry], { flowCollectionPadding: false, lineWidth: 0 }).trimEnd().split('\n')
  const lines = proposals.length === 0 ? ['types: {}'] : ['types:']
  for (const type of new Set(proposals.map((proposal) => proposal.type))) {
    lines.push(`  ${type}:`)
    for (const { entry, note, deeper } of proposals.filter((proposal) => proposal.type === type)) {
      if (note !== undefined) lines.push(`    # ${note}`)
      lines.push(...item(entry).map((line) => `    ${line}`))
      if (deeper) {
        lines.push('      # With an account, replace the entry above with this deeper check.')
        lines.push(...item(deeper).map((line) => `    # ${line}`))
      }
    }
  }
  return `${[...head.map((line) => `# ${line}`.trimEnd()), ...lines].join('\n')}\n`
}
