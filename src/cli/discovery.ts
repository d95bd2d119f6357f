import { hostname } from 'node:os'
import { type Discovery, discover } from '../core/discover/index.ts'
import { sanitizeLine } from '../core/sanitize.ts'
import { servesHere } from './running.ts'

export type ProposedConfig = Discovery & {
  /** A svc.yaml with all proposals. `head` is the lines above them, without the comment sign. */
  readonly file: (head: readonly string[]) => Promise<string>
}

/** Examines the services of this machine. Signs in nowhere and changes nothing. Rejects only when the signal aborts. */
export async function proposeForThisMachine(signal: AbortSignal): Promise<ProposedConfig> {
  // svc does not monitor itself: its own responses would be part of what they report.
  const skip = servesHere().map(({ url }) => Number(new URL(url).port))
  const discovery = await discover(signal, { skip })
  return {
    ...discovery,
    file: async (head) => {
      const { proposals } = await import('../core/config/index.ts')
      const { proposedFile } = await proposals()
      return await proposedFile(discovery.proposals, head)
    },
  }
}

/** Who proposed a file, and when. */
export const proposedBy = (command: string): string =>
  `Proposed by ${command} on ${hostname()}, ${new Date().toISOString().slice(0, 10)}.`

/** The proposals and what was not recognized, one per line. */
export const discoveryLines = ({ proposals, others }: Discovery): readonly string[] => [
  ...proposals.map(({ entry, type }) => sanitizeLine(`${type}: ${entry.kind} ${entry.name}`)),
  ...others.map(({ host, port, product }) =>
    sanitizeLine(`not recognized: ${host} port ${port}${product === undefined ? '' : ` (says ${product})`}`),
  ),
]
