import { Fault } from '../../core/base/errors.ts'
import { sanitizeLine, sanitizeText } from '../../core/base/sanitize.ts'
import { SvcCommand } from '../command/base.ts'
import { homeOf } from '../io/process.ts'
import { type CommandSession, type OpeningOptions, openSession, placeOf, type SessionFlags } from './session.ts'

/** Which svc.yaml a command in process reads. */
export const configNote = ({ origin }: { readonly origin: string | undefined }): string =>
  `Note: ${origin === undefined ? 'there is no svc.yaml' : `monitors of ${origin}`}`

/** A command that says what it acts on where that is easily mistaken. */
export abstract class TargetCommand extends SvcCommand {
  readonly #warnings = new Set<string>()

  /**
   * States that the command acts on this machine, although a profile or variable chooses a server for other commands.
   * Silent with --local, which states the same, and with --json. `describe` names what the command acts on.
   */
  protected async sayLocal(describe: () => Promise<string>): Promise<void> {
    if (this.argv.includes('--local') || this.isJsonRequested()) return
    const { otherTarget } = await import('./other-target.ts')
    const other = await otherTarget(this.io.env)
    if (other !== undefined) this.say(sanitizeLine(`On this machine, not at ${other}: ${await describe()}`))
  }

  /** Opens the Service at the target of the command for `work`, names the target in failures, and closes it. */
  protected async inSession<R>(
    flags: SessionFlags,
    work: (session: CommandSession, target: string) => Promise<R>,
    options: Pick<OpeningOptions, 'readsConfig' | 'tolerant'> = {},
  ): Promise<R> {
    await using session = await openSession(flags, this.io, { ...options, say: (line) => this.say(line) })
    const target = placeOf(session)
    this.target = target
    await this.warnOfOtherStore(session.runtime?.facts.store)
    try {
      return await work(session, target)
    } catch (error) {
      throw inWordsOfServer(error)
    }
  }

  /** Says which svc.yaml has the monitors that the command line names. Silent at a server, which reads its own. */
  protected sayConfig({ config }: Pick<CommandSession, 'config'>): void {
    if (config && !this.isJsonRequested()) this.say(sanitizeLine(configNote(config)))
  }

  /**
   * Warns once when a `svc serve` on this machine uses another store than this command (P8). Throws Fault `Local` for root
   * without a store of its own where the systemd service has one.
   */
  protected async warnOfOtherStore(store: string | undefined): Promise<void> {
    if (store === undefined) return
    if (!this.argv.some((word) => word === '--store' || word.startsWith('--store='))) {
      const { secondStore } = await import('./service-store.ts')
      const second = await secondStore({}, this.io.env)
      if (second?.fault) throw second.fault
      if (second) this.#warn(second.warning)
    }
    const { otherStoreWarning } = await import('./running.ts')
    const warning = otherStoreWarning(store, homeOf(this.io.env))
    if (warning !== undefined) this.#warn(warning)
  }

  #warn(warning: string): void {
    if (this.#warnings.has(warning)) return
    this.#warnings.add(warning)
    this.say(sanitizeText(warning))
  }
}

/**
 * A refusal by a server in its own words, which are those of the same command on its machine. The report names the server
 * beneath. Other errors as they are.
 */
function inWordsOfServer(error: unknown): unknown {
  if (!(error instanceof Fault)) return error
  const { fault, errorCode, details } = error
  const { remoteMessage, hints = [] } = details
  // A server without remedies may say nothing but the name that it did not find.
  const isOwn =
    fault === 'Conflict' ||
    errorCode === 'ValidationException' ||
    (hints.length > 0 && (fault === 'NotFound' || fault === 'BadRequest'))
  return isOwn && remoteMessage !== undefined
    ? new Fault(fault, remoteMessage, { ...details, errorCode, cause: error })
    : error
}
