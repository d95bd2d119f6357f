import { homedir, platform } from 'node:os'
import type { Interfaces } from '@oclif/core'
import { Command } from '@oclif/core/command'
import { Config } from '@oclif/core/config'
import { boolean } from '@oclif/core/flags'
import { Fault } from '../core/errors.ts'
import { settle } from './exit.ts'
import { colourFlag } from './flags.ts'
import { packageJson, packageRoot, writeError, writeOutput } from './process.ts'
import { chooseColour } from './terminal.ts'

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
    const [{ otherStoreWarning }, { sanitizeText }] = await Promise.all([
      import('./running.ts'),
      import('../core/sanitize.ts'),
    ])
    const warning = otherStoreWarning(store)
    if (warning !== undefined) this.say(sanitizeText(warning))
  }

  /** To stdout: the answer. */
  protected print(text: string): void {
    writeOutput(text.endsWith('\n') ? text : `${text}\n`)
  }
}

/**
 * oclif's Config without its look around the disk: a known command needs no plugins, manifest or
 * user settings of oclif's. Help goes through the full Config instead.
 */
export class StaticConfig extends Config {
  constructor() {
    const pjson = packageJson() as unknown as Interfaces.PJSON
    super({ root: packageRoot(), pjson })
    this.pjson = pjson
    this.root = packageRoot()
    this.name = pjson.name
    this.version = pjson.version
    this.bin = 'svc'
    this.dirname = 'svc'
    this.topicSeparator = ' '
    this.platform = platform() as Interfaces.PlatformTypes
    this.windows = platform() === 'win32'
    this.home = homedir()
    this.shell = 'unknown'
    this.arch = process.arch as Interfaces.ArchTypes
    this.userAgent = `${pjson.name}/${pjson.version}`
    this.valid = true
  }

  /** There are no plugins, so nobody listens; oclif's own needs a root plugin to look at. */
  override async runHook<T extends keyof Interfaces.Hooks>(): Promise<
    Interfaces.Hook.Result<Interfaces.Hooks[T]['return']>
  > {
    return { successes: [], failures: [] }
  }
}

/** Runs a command that is known by its id. */
export async function runCommand(
  id: string,
  load: () => Promise<{ readonly default: CommandClass }>,
  argv: readonly string[],
): Promise<void> {
  try {
    const { default: Command } = await load()
    Command.id = id
    await new Command([...argv], new StaticConfig()).start()
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
  const heard = (name: 'SIGINT' | 'SIGTERM') => (): void => {
    if (controller.signal.aborted) {
      process.removeAllListeners(name)
      process.kill(process.pid, name)
      return
    }
    controller.abort(new Fault('Interrupted', name === 'SIGINT' ? 'Interrupted' : 'Ended by SIGTERM'))
  }
  const int = heard('SIGINT')
  const term = heard('SIGTERM')
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
