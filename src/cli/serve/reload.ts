import { Fault } from '../../core/base/errors.ts'
import type { Config, ReloadedIncludes } from '../../core/config/index.ts'
import type { RuntimeFacts } from '../../core/protocol/service/service.ts'
import type { Log, RunningServer } from '../../core/server/index.ts'
import type { Core } from '../../core/service/open.ts'
import { GivenUp } from '../../core/service/reload.ts'
import { reasonToWait } from '../../core/watch/configuration/index.ts'
import type { ReloadOutcome, ReloadRefusal, ReloadRequest, Reloads } from '../session/running.ts'
import type { ConfigWatcher } from './watch-config.ts'

export type ReloadWork = {
  /** The settings that have changed and need a restart. */
  readonly restartSettings: (before: Config, after: Config) => readonly string[]
  /** Reads svc.yaml, and notes in `read` what it finds. Rejects with a Fault for any mistake. */
  readonly load: (reload: ReloadedIncludes, read: Map<string, string>) => Promise<Config>
  /** Called with a configuration that is in force now. Must not throw. */
  readonly inForce: (config: Config) => void
  /** Reads the certificate and the key of the server. Undefined without TLS. */
  readonly certificate: () => Promise<Parameters<RunningServer['certificate']>[0] | undefined>
  readonly reload: NonNullable<Core['reload']>
  readonly watcher: Pick<ConfigWatcher, 'isSettled' | 'inForce' | 'waits'>
  readonly server: Pick<RunningServer, 'certificate'>
  readonly log: Log
  /** Those of the configuration in force. */
  readonly facts: Pick<RuntimeFacts, 'configuration' | 'schedule'>
  /** Called when a reload that was asked for begins and when it has ended. Must not throw. */
  readonly report: (reloads: Reloads) => void
}

export type Reloader = {
  /** Reloads the configuration and the certificate. Calls during a reload cause one more. Never rejects. */
  readonly ask: (request: ReloadRequest) => Promise<void>
  /** Reloads the configuration if nobody has to look at the change first. Never rejects. */
  readonly offer: () => Promise<void>
}

/** Reloads the configuration, one reload at a time. A mistake leaves everything as it is. */
export function reloader(work: ReloadWork): Reloader {
  let underWay: Promise<void> = Promise.resolve()
  let next: ReloadRequest | undefined
  let latest = 0
  let last: Reloads['last']
  const reloadAsRequested = async (): Promise<void> => {
    const request = next
    // The one before has begun after this call.
    if (!request) return
    next = undefined
    latest += 1
    work.report({ latest, last })
    last = { ...(await reloadOnce(work, request)), number: latest }
    work.report({ latest, last })
  }
  const inTurn = async (reload: () => Promise<unknown>): Promise<void> => {
    underWay = underWay.then(async () => void (await reload()))
    await underWay
  }
  return {
    ask: async ({ emptyInclude }) => {
      next = { emptyInclude: emptyInclude || next?.emptyInclude === true }
      await inTurn(reloadAsRequested)
    },
    offer: async () => await inTurn(async () => await reloadOnce(work, undefined)),
  }
}

/** `request`: undefined for a change that nobody has asked to put into force. */
async function reloadOnce(work: ReloadWork, request: ReloadRequest | undefined): Promise<ReloadOutcome> {
  const { restartSettings, load, certificate, reload, watcher, server, log, facts } = work
  const read = new Map<string, string>()
  const loadSettled = async (includes: ReloadedIncludes): Promise<Config> => {
    try {
      const config = await load(includes, read)
      if (!request && !watcher.isSettled(read)) throw new GivenUp()
      return config
    } catch (error) {
      throw error instanceof Fault && !request && !watcher.isSettled(read) ? new GivenUp() : error
    }
  }
  try {
    let useCertificate = (): void => {}
    let applied = undefined as Config | undefined
    const { added, removed, changed } = await reload(
      async (inForce) => {
        const { matchedPatterns: matched = [] } = inForce
        const config = await loadSettled({ matched, emptyInclude: request?.emptyInclude ?? false })
        refuse(inForce, config, restartSettings)
        const pair = request && (await certificate())
        if (pair) useCertificate = server.certificate(pair)
        applied = config
        return config
      },
      (consequences) => {
        const reason = request ? undefined : reasonToWait(consequences)
        if (reason !== undefined) throw new Fault('Local', reason)
      },
    )
    useCertificate()
    if (applied) work.inForce(applied)
    watcher.inForce(read)
    const warnings = applied?.warnings ?? []
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
    const outcome = { added: [], removed: [], changed: [], warnings: [], refusal }
    if (error instanceof GivenUp) return outcome
    const reason = [refusal.message, ...refusal.hints].join('\n')
    if (request) log({ level: 'error', msg: `not reloaded; the previous configuration remains active: ${reason}` })
    else {
      watcher.waits(refusal.message)
      log({
        level: 'warn',
        msg: `the configuration has changed and waits; the previous one remains active: ${reason}`,
      })
    }
    return outcome
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
