import { exits, Fault } from '../../core/errors.ts'
import { coversNothingCode, type NotSilenced } from '../../core/protocol/index.ts'
import { parseUntil } from '../command/instant.ts'
import { TargetCommand } from '../session/target-command.ts'

/** A command that silences, or ends that. */
export abstract class QuietCommand extends TargetCommand {
  /** Until when the flags ask for silence. Throws Usage for both, and for neither unless `isOptional`. */
  protected lengthOf(
    flags: { readonly for?: number | undefined; readonly until?: string | undefined },
    isOptional = false,
  ): { readonly For?: number; readonly Until?: Date } {
    if (flags.for !== undefined && flags.until !== undefined)
      throw new Fault('Usage', '--for and --until cannot be combined', { hints: ['Give one of them.'] })
    if (flags.for !== undefined) return { For: flags.for }
    if (flags.until !== undefined) return { Until: parseUntil(flags.until, this.io.clock.now()) }
    if (isOptional) return {}
    throw new Fault('Usage', '--for or --until is missing: for how long?', {
      hints: ['For example --for 2h or --until 04:00; at most 30 days.'],
    })
  }

  /** Says where receivers go on sending. Returns the exit code. */
  protected async sayNotSilenced(places: readonly NotSilenced[] = []): Promise<number | undefined> {
    const { notSilencedLine } = await import('./lists.ts')
    for (const place of places) this.writeNote(notSilencedLine(place))
    return places.length > 0 ? exits.partial.code : undefined
  }
}

/** Throws Usage where a pattern covers nothing: the command line is wrong. Throws anything else as it is. */
export async function orUsage<R>(answer: Promise<R>): Promise<R> {
  try {
    return await answer
  } catch (error) {
    if (!(error instanceof Fault) || error.errorCode !== coversNothingCode) throw error
    throw new Fault('Usage', error.message, { hints: error.details.hints })
  }
}
