import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { sanitizeLine } from '../../core/base/sanitize.ts'
import { type Discovery, discover, type Proposal } from '../../core/checks/discover/index.ts'
import type { Trial } from '../../core/protocol/service/service.ts'
import type { CommandClock, ProcessEnvironment } from '../io/io.ts'
import { homeOf, machine, packageJson } from '../io/process.ts'
import { servesHere } from '../session/running.ts'

export type ProposedConfig = Discovery & {
  /** A svc.yaml with all proposals. `head` is the lines above them, without the comment sign. */
  readonly file: (head: readonly string[]) => Promise<string>
}

/**
 * Examines the services of this machine and runs the monitors that it proposes for them once. Signs in nowhere and
 * changes nothing. Rejects only when the signal aborts.
 */
export async function proposeForThisMachine(env: ProcessEnvironment, signal: AbortSignal): Promise<ProposedConfig> {
  // svc does not monitor itself: its own responses would be part of what they report.
  const skip = servesHere(homeOf(env)).map(({ url }) => Number(new URL(url).port))
  const discovered = await discover(signal, { skip })
  const discovery = { ...discovered, proposals: await tryProposals(discovered.proposals, signal) }
  return {
    ...discovery,
    file: async (head) => {
      const { proposals } = await import('../../core/config/index.ts')
      const { proposedFile } = await proposals()
      return await proposedFile(discovery.proposals, head)
    },
  }
}

/**
 * The proposals, each with the problem of its entry, if it has one: every entry runs once in Standard, with the
 * configuration as it would be written. Rejects only when the signal aborts.
 */
export async function tryProposals(all: readonly Proposal[], signal: AbortSignal): Promise<readonly Proposal[]> {
  if (all.length === 0) return all
  const [{ openCore }, config] = await Promise.all([
    import('../../core/service/open.ts'),
    import('../../core/config/index.ts'),
  ])
  const folder = mkdtempSync(join(tmpdir(), 'svc-discover-'))
  try {
    const file = await (await config.proposals()).proposedFile(all, [])
    writeFileSync(join(folder, 'svc.yaml'), file, { mode: 0o600 })
    const loaded = await config.loadConfig({ env: { SVC_HOME: folder }, platform: machine.platform, home: folder })
    const options = { config: loaded, store: undefined, shared: false, details: 'anyone' } as const
    const { trial, runtime } = await openCore({ version: packageJson().version, ...options })
    try {
      return await Promise.all(
        all.map(async (proposal) => {
          const { type, entry } = proposal
          const monitor = `${entry.kind} ${entry.name}`
          const problem = problemIn(await trial({ type, monitor, mode: 'Standard' }, signal))
          return problem === undefined ? proposal : { ...proposal, problem }
        }),
      )
    } finally {
      await runtime.close()
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Why a monitor does not work as it is: it fails, or it cannot check without an account. */
function problemIn({ results }: Trial): string | undefined {
  const failed = results.find(({ level }) => level === 'fail')
  const lacking = results.find(({ level, message }) => level === 'warn' && message.startsWith('not checked:'))
  const worst = failed ?? results.find(({ level }) => level === 'not checked') ?? lacking
  if (worst === undefined) return undefined
  const needs = worst === lacking || worst.fault === 'auth' ? 'it needs an account: ' : ''
  return sanitizeLine(`${needs}${worst.check}: ${worst.message}`)
}

/** Who proposed a file, and when. */
export const proposedBy = (command: string, { now }: CommandClock): string =>
  `Proposed by ${command} on ${hostname()}, ${now().toISOString().slice(0, 10)}.`

/** The proposals and what was not recognized, one per line. */
export const discoveryLines = ({ proposals, others }: Discovery): readonly string[] => [
  ...proposals.map(({ entry, type, problem }) =>
    sanitizeLine(`${type}: ${entry.kind} ${entry.name}${problem === undefined ? '' : ` (as a comment: ${problem})`}`),
  ),
  ...others.map(({ host, port, product }) =>
    sanitizeLine(`not recognized: ${host} port ${port}${product === undefined ? '' : ` (says ${product})`}`),
  ),
]
