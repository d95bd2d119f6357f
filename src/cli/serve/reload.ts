import { Fault } from '../../core/base/errors.ts'
import type { Config, ReloadedIncludes } from '../../core/config/index.ts'
import type { RuntimeFacts } from '../../core/protocol/service/service.ts'
import type { Log, RunningServer } from '../../core/server/index.ts'
import type { Core } from '../../core/service/open.ts'
import type { ReloadOutcome, ReloadRefusal, Reloads } from '../session/running.ts'

export type ReloadWork = {
  /** The settings that have changed and need a restart. */
  readonly restartSettings: (before: Config, after: Config) => readonly string[]
  /** Reads svc.yaml. Rejects with a Fault for any mistake. */
  readonly load: (reload: ReloadedIncludes) => Promise<Config>
  /** Whether this reload accepts patterns of `include:` that match nothing any more. */
  readonly emptyInclude: () => boolean
  /** Reads the certificate and the key of the server. Undefined without TLS. */
  readonly certificate: () => Promise<Parameters<RunningServer['certificate']>[0] | undefined>
  readonly reload: NonNullable<Core['reload']>
  readonly server: Pick<RunningServer, 'certificate'>
  readonly log: Log
  /** Those of the configuration in force. */
  readonly facts: Pick<RuntimeFacts, 'configuration' | 'schedule'>
  /** Called when a reload begins and when it has ended. Must not throw. */
  readonly report: (reloads: Reloads) => void
}

/**
 * Reloads the configuration and the certificate whenever it is called, one reload at a time: calls during one cause one
 * more. A mistake leaves everything as it is. Never rejects.
 */
export function reloader(work: ReloadWork): () => Promise<void> {
  let underWay: Promise<void> | undefined
  let again = false
  let latest = 0
  let last: Reloads['last']
  const run = async (): Promise<void> => {
    do {
      again = false
      latest += 1
      work.report({ latest, last })
      last = { ...(await reloadOnce(work)), number: latest }
      work.report({ latest, last })
    } while (again)
    underWay = undefined
  }
  return async () => {
    again = true
    underWay ??= run()
    await underWay
  }
}

async function reloadOnce(work: ReloadWork): Promise<ReloadOutcome> {
  const { restartSettings, load, certificate, reload, server, log, facts } = work
  const emptyInclude = work.emptyInclude()
  try {
    let warnings: readonly string[] = []
    let useCertificate = (): void => {}
    const { added, removed, changed } = await reload(async (inForce) => {
      const config = await load({ matched: inForce.matchedPatterns ?? [], emptyInclude })
      refuse(inForce, config, restartSettings)
      const pair = await certificate()
      if (pair) useCertificate = server.certificate(pair)
      ;({ warnings } = config)
      return config
    })
    useCertificate()
    for (const warning of warnings) log({ level: 'warn', msg: warning })
    log({
      level: 'info',
      msg: `reloaded: ${added.length} added, ${removed.length} removed, ${changed.length} changed`,
      configuration: facts.configuration ?? 'none',
      added: listed(added),
      removed: listed(removed),
      changed: listed(changed),
      schedule: facts.schedule,
    })
    return { added, removed, changed, warnings }
  } catch (error) {
    const refusal = refusalOf(error)
    const reason = [refusal.message, ...refusal.hints].join('\n')
    log({ level: 'error', msg: `not reloaded; the previous configuration remains active: ${reason}` })
    return { added: [], removed: [], changed: [], warnings: [], refusal }
  }
}

function refusalOf(error: unknown): ReloadRefusal {
  if (error instanceof Fault) {
    const { hints = [], places = [] } = error.details
    return { message: error.message, hints, places }
  }
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return { message, hints: [], places: [] }
}

/** Throws Local for what a reload cannot change. */
function refuse(inForce: Config, next: Config, restartSettings: ReloadWork['restartSettings']): void {
  if (inForce.origin !== undefined && next.origin === undefined) {
    throw new Fault('Local', `${inForce.origin} no longer exists`, {
      hints: ['Restore the file, or restart svc serve.'],
    })
  }
  const names = restartSettings(inForce, next)
  if (names.length === 0) return
  const verb = names.length === 1 ? 'has' : 'have'
  throw new Fault('Local', `${names.join(', ')} ${verb} changed, which needs a restart`, {
    hints: ['Restart svc serve, or undo the change.'],
  })
}

/** Names beyond these would make a line of many kilobytes. */
const maxNames = 20

const listed = (names: readonly string[]): string | undefined =>
  names.length === 0
    ? undefined
    : [...names.slice(0, maxNames), ...(names.length > maxNames ? [`… and ${names.length - maxNames} more`] : [])].join(
        ', ',
      )
