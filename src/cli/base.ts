import type { ArgInput, FlagInput, Input } from '@oclif/core/parser'
import { Fault } from '../core/errors.ts'
import { sanitizeText } from '../core/sanitize.ts'
import { settle } from './exit.ts'
import { boolean, colourFlag, type Parsed, parse, type Values } from './flags.ts'
import { writeError, writeOutput } from './process.ts'
import { chooseColour } from './terminal.ts'

export type CommandClass = Pick<typeof SvcCommand, 'summary' | 'flags' | 'baseFlags' | 'args'> &
  (new (
    argv: readonly string[],
  ) => SvcCommand)

/**
 * What all commands share: output rules, signals, and one way for every failure out. The static
 * properties are those of an oclif command, and oclif makes the help of them.
 */
export abstract class SvcCommand {
  static summary: string
  static description: string | undefined
  static examples: string[]
  static args: ArgInput = {}
  static flags: FlagInput = {}
  static baseFlags = {
    json: boolean({ description: 'Print one JSON value, errors included', helpGroup: 'GLOBAL' }),
    color: colourFlag,
    quiet: boolean({ char: 'q', description: 'Print nothing but the answer and errors', helpGroup: 'GLOBAL' }),
    debug: boolean({ description: 'Print the stack of an unexpected failure', helpGroup: 'GLOBAL' }),
  }

  protected argv: readonly string[]

  constructor(argv: readonly string[]) {
    this.argv = argv
  }

  /** Does the work; gives the exit code when it is not 0. `signal` aborts at ctrl-C. */
  protected abstract perform(signal: AbortSignal): Promise<number | undefined>
  /** What the command acts on, once it is known: failures name it. */
  protected target: string | undefined

  /** The whole life of a command: perform, and every failure's way out. */
  async run(): Promise<void> {
    chooseColour(this.argv)
    try {
      await this.performInterruptibly()
    } catch (error) {
      const { flags, baseFlags } = this.constructor as typeof SvcCommand
      await settle(error, {
        json: this.wantsJson(),
        debug: this.argv.includes('--debug'),
        target: this.target,
        flags: Object.keys({ ...flags, ...baseFlags }),
      })
    }
  }

  private async performInterruptibly(): Promise<void> {
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

  /** The flags and arguments of this command line, by the tables of `command`. */
  protected parse<F extends Values, B extends Values, A extends Values>(
    command: Input<F, B, A>,
  ): Promise<Parsed<F, B, A>> {
    return parse(command, this.argv)
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
    const { otherStoreWarning } = await import('./running.ts')
    const warning = otherStoreWarning(store)
    if (warning !== undefined) this.say(sanitizeText(warning))
  }

  /** To stdout: the answer. */
  protected print(text: string): void {
    writeOutput(text.endsWith('\n') ? text : `${text}\n`)
  }
}

/** Runs a command that is known by its id. */
export async function runCommand(
  load: () => Promise<{ readonly default: CommandClass }>,
  argv: readonly string[],
): Promise<void> {
  try {
    const { default: Command } = await load()
    await new Command(argv).run()
  } catch (error) {
    await settle(error, { json: argv.includes('--json'), debug: argv.includes('--debug') })
  }
}

/**
 * A signal that aborts at the first SIGINT or SIGTERM, with the Fault that tells which. A second one
 * ends the process at once: whoever presses ctrl-C twice means it.
 */
export function interruption(): { readonly signal: AbortSignal; readonly release: () => void } {
  const controller = new AbortController()
  const onSignal = (name: 'SIGINT' | 'SIGTERM') => (): void => {
    if (controller.signal.aborted) {
      process.removeAllListeners(name)
      process.kill(process.pid, name)
      return
    }
    controller.abort(new Fault('Interrupted', name === 'SIGINT' ? 'Interrupted' : 'Ended by SIGTERM'))
  }
  const int = onSignal('SIGINT')
  const term = onSignal('SIGTERM')
  process.on('SIGINT', int)
  process.on('SIGTERM', term)
  return {
    signal: controller.signal,
    release: () => {
      process.off('SIGINT', int)
      process.off('SIGTERM', term)
    },
  }
}
