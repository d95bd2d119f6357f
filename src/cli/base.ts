import { Command } from '@oclif/core/command'
import { boolean } from '@oclif/core/flags'
import { chooseColour } from './colour.ts'
import { settle } from './exit.ts'
import { colourFlag } from './flags.ts'
import { interruption } from './signals.ts'
import { writeError, writeOutput } from './standard-streams.ts'
import type { StaticConfig } from './static-config.ts'

export type CommandClass = { new (argv: string[], config: StaticConfig): SvcCommand; id: string }

/** What all commands share: output rules, signals, and one way for every failure out. */
export abstract class SvcCommand extends Command {
  static override baseFlags = {
    json: boolean({ description: 'Print one JSON value, errors included', helpGroup: 'GLOBAL' }),
    color: colourFlag,
    quiet: boolean({ char: 'q', description: 'Print nothing but the answer and errors', helpGroup: 'GLOBAL' }),
    debug: boolean({ description: 'Print the stack of an unexpected failure', helpGroup: 'GLOBAL' }),
  }

  /** The whole life of a command: parse, perform, and every failure's way out. */
  start(): Promise<unknown> {
    return this._run()
  }

  /** Does the work; gives the exit code when it is not 0. `signal` aborts at ctrl-C. */
  protected abstract perform(signal: AbortSignal): Promise<number | undefined>
  /** What the command acts on, once it is known: failures name it. */
  protected target: string | undefined

  async run(): Promise<void> {
    const interrupted = interruption()
    try {
      const code = await this.perform(interrupted.signal)
      if (code !== undefined) process.exitCode = code
    } catch (error) {
      // Whatever breaks once the user has asked to stop is the interruption's doing.
      throw interrupted.signal.aborted ? interrupted.signal.reason : error
    } finally {
      interrupted.release()
    }
  }

  // Deprecations are said in the changelog; oclif's look-up of its own ids is not free.
  protected override async init(): Promise<void> {
    chooseColour(this.argv)
  }

  protected override async catch(error: unknown): Promise<void> {
    await settle(error, {
      json: this.wantsJson(),
      debug: this.argv.includes('--debug'),
      target: this.target,
      flags: Object.keys({ ...this.ctor.flags, ...this.ctor.baseFlags }),
    })
  }

  /** Known without parsing: the failure may be that the line does not parse. */
  protected wantsJson(): boolean {
    const end = this.argv.indexOf('--')
    const flags = end === -1 ? this.argv : this.argv.slice(0, end)
    const output = flags.findIndex((flag) => flag === '--output' || flag === '-o')
    return (
      flags.includes('--json') ||
      flags.some((flag) => /^(?:--output=|-o=?)json$/.test(flag)) ||
      (output !== -1 && flags[output + 1] === 'json')
    )
  }

  /** To stderr: what is not the answer. Silent with --quiet. */
  protected say(text: string): void {
    if (!this.argv.includes('--quiet') && !this.argv.includes('-q')) writeError(`${text}\n`)
  }

  /** P8: warns when a `svc serve` runs here with another store than the one that is acted on. */
  protected async warnOfOtherStore(store: string | undefined): Promise<void> {
    if (store === undefined) return
    const [{ otherStoreWarning }, { safeText }] = await Promise.all([import('./running.ts'), import('./safe-text.ts')])
    const warning = otherStoreWarning(store)
    if (warning !== undefined) this.say(safeText(warning))
  }

  /** To stdout: the answer. */
  protected print(text: string): void {
    writeOutput(text.endsWith('\n') ? text : `${text}\n`)
  }
}
