import { exits, Fault } from '../../core/base/errors.ts'
import { coversNothingCode, type NotSilenced } from '../../core/protocol/index.ts'
import { parseUntil } from '../command/instant.ts'
import { TargetCommand } from '../session/target-command.ts'

/** A command that begins or ends silences. */
export abstract class SilenceCommand extends TargetCommand {
  /** The end of the silence by the flags. Throws Usage for both flags, and for neither unless `isOptional`. */
  protected lengthOf(
    flags: { readonly for?: number | undefined; readonly until?: string | undefined },
    isOptional = false,
  ): { readonly For?: number; readonly Until?: Date } {
    if (flags.for !== undefined && flags.until !== undefined)
      throw new Fault('Usage', '--for and --until cannot be combined', { hints: ['Give one of them.'] })
    if (flags.for !== undefined) return { For: flags.for }
    if (flags.until !== undefined) {
      const now = this.io.clock.now().getTime()
      const until = parseUntil('until', flags.until, now)
      if (until > now) return { Until: new Date(until) }
      throw new Fault('Usage', `--until ${flags.until} has passed`, {
        hints: ['Give a time in the future, or a duration with --for.'],
      })
    }
    if (isOptional) return {}
    throw new Fault('Usage', '--for or --until is missing: for how long?', {
      hints: ['For example --for 2h or --until 04:00; at most 30 days.'],
    })
  }

  /** Lists the receivers that continue to send. Returns the exit code. */
  protected async sayNotSilenced(places: readonly NotSilenced[] = []): Promise<number | undefined> {
    const { notSilencedLine } = await import('./lists.ts')
    for (const place of places) this.writeNote(notSilencedLine(place))
    return places.length > 0 ? exits.partial.code : undefined
  }
}

/** Throws Usage if a pattern covers nothing: the command line is wrong. Rethrows anything else. */
export async function orUsage<R>(answer: Promise<R>): Promise<R> {
  try {
    return await answer
  } catch (error) {
    if (!(error instanceof Fault) || error.errorCode !== coversNothingCode) throw error
    const { hints, remoteMessage: message = error.message } = error.details
    throw new Fault('Usage', message, { hints })
  }
}
