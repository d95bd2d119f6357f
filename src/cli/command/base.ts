import type { Writable } from 'node:stream'
import type { ArgInput, FlagInput, Input } from '@oclif/core/parser'
import { Fault } from '../../core/base/errors.ts'
import type { TextForm } from '../../core/base/sanitize.ts'
import type { Io, Signals } from '../io/io.ts'
import type { Pager } from '../io/pager.ts'
import { columnsOf } from '../io/terminal.ts'
import type { Answer } from '../render/document.ts'
import type { ListOutput } from '../render/list.ts'
import type { note } from '../render/note.ts'
import { settle } from './exit.ts'
import { boolean, colourFlag, custom, oneOf, type Parsed, parse, type Values } from './flags.ts'

/** Where an answer comes from. Loading it may load much, so that only help, documentation and tests do it. */
export type AnswerSource = {
  readonly load: () => Promise<Answer>
  /** Whether the command prints rows, which `--output` and `--no-header` are about. */
  readonly isList: boolean
}
export const lists = (load: AnswerSource['load']): AnswerSource => ({ load, isList: true })
export const prints = (load: AnswerSource['load']): AnswerSource => ({ load, isList: false })

/** The flags of every command. */
export const globalFlags = {
  json: boolean({ description: 'Print one JSON value, errors included', helpGroup: 'GLOBAL' }),
  color: colourFlag,
  quiet: boolean({ char: 'q', description: 'Print only the answer and errors', helpGroup: 'GLOBAL' }),
  debug: boolean({ description: 'Print the stack of an unexpected failure', helpGroup: 'GLOBAL' }),
}

/** The flag of every command whose answer may be longer than a screen. */
export const pagerFlag = {
  'no-pager': boolean({ description: 'Print a long list without a pager', helpGroup: 'GLOBAL' }),
}

/** The formats of every list. */
export const listFormats = ['table', 'json', 'tsv'] as const

/** The flags of every command that prints a list. */
export const listFlags = {
  output: custom<(typeof listFormats)[number]>({
    char: 'o',
    helpValue: `<${listFormats.join('|')}>`,
    parse: async (input) => oneOf('output', listFormats, input, 'Formats'),
  })({ description: 'Format of a list (default: table on a terminal, tsv in a pipe)', helpGroup: 'GLOBAL' }),
  'no-header': boolean({ description: 'Omit the header line in a pipe', helpGroup: 'GLOBAL' }),
  ...pagerFlag,
}

export type CommandClass = Pick<typeof SvcCommand, 'summary' | 'flags' | 'baseFlags' | 'args' | 'answers'> &
  (new (
    argv: readonly string[],
    io: Io,
  ) => SvcCommand)

/**
 * The base of all commands: output rules, signals, and one way to report failures. The static properties are those of
 * an oclif command; oclif generates the help from them.
 */
export abstract class SvcCommand {
  static summary: string
  static description: string | undefined
  static examples: string[]
  static args: ArgInput = {}
  static flags: FlagInput = {}
  /**
   * The answers that the command prints with `--json`, and in a pipe, by the part of the command line that chooses
   * each: an empty text, or a flag such as `--from-file`. The help, the JSON Schemas and the flags of lists derive from
   * it.
   */
  static answers: Readonly<Record<string, AnswerSource>> = {}
  static get baseFlags(): typeof globalFlags {
    // biome-ignore lint/complexity/noThisInStatic: the answers are those of the command, not of this class.
    return Object.values(this.answers).some(({ isList }) => isList) ? { ...globalFlags, ...listFlags } : globalFlags
  }

  protected argv: readonly string[]
  protected readonly io: Io
  /** As it is typed: `users add`. */
  name: string | undefined

  constructor(argv: readonly string[], io: Io) {
    this.argv = argv
    this.io = io
  }

  /** Does the work. Returns the exit code if it is not 0. `signal` aborts at ctrl-C. */
  protected abstract perform(signal: AbortSignal): Promise<number | undefined>
  /** The target of the command, once known. Failure messages name it. */
  protected target: string | undefined

  /** A list that is longer than the screen, until the command has said everything, and the notes below it. */
  private long = ''
  private readonly notesBelow: string[] = []

  /** Lays out notes. Undefined until `run`, and where standard error is not a terminal. */
  private laidOut: typeof note | undefined

  /** Runs the command and reports every failure. */
  async run(): Promise<void> {
    try {
      await this.performInterruptibly()
    } catch (error) {
      await this.reportFailure(error)
    }
  }

  /** Reports a failure and sets the exit code. */
  protected async reportFailure(error: unknown, { json = this.isJsonRequested() } = {}): Promise<void> {
    const report = {
      json,
      debug: this.argv.includes('--debug'),
      target: this.target,
      argv: this.argv,
      command: this.name,
    }
    await settle(error, report, this.io)
  }

  private async performInterruptibly(): Promise<void> {
    const interrupted = interruption(this.io.signals)
    try {
      // A pipe needs no layout, and most starts of svc have one.
      if (this.io.stderr.isTTY) this.laidOut = (await import('../render/note.ts')).note
      const code = await this.perform(interrupted.signal)
      if (code !== undefined) this.io.exitCode = code
    } catch (error) {
      // After the user has asked to stop, the interruption explains any error.
      throw interrupted.signal.aborted ? interrupted.signal.reason : error
    } finally {
      await this.showLong()
      interrupted.release()
    }
  }

  /** Shows the list that is longer than the screen, and the notes that follow it. */
  private async showLong(): Promise<void> {
    if (this.long === '') return
    const { showInPager } = await import('../io/pager.ts')
    await showInPager(this.long, this.io, this.argv, this.listForm)
    this.long = ''
    for (const note of this.notesBelow) this.writeNote(note)
  }

  /** Parses the flags and arguments of this command line, as `command` declares them. Throws Usage for a wrong one. */
  protected async parse<F extends Values, B extends Values, A extends Values>(
    command: Input<F, B, A>,
  ): Promise<Parsed<F, B, A>> {
    try {
      const parsed = await parse(command, this.argv)
      const { output } = parsed.flags
      if (output === undefined) return parsed
      if (output === 'json') return { ...parsed, flags: { ...parsed.flags, json: true } }
      if (parsed.flags['json'] !== true) return parsed
      const cannot = `--json and --output ${this.format} cannot be combined`
      throw new Fault('Usage', cannot, { hints: ['Omit one of them.'] })
    } catch (error) {
      if (error instanceof Fault || !(error instanceof Error) || !('oclif' in error)) throw error
      const { usageFault } = await import('./usage-fault.ts')
      const flags = { ...command.baseFlags, ...command.flags } as FlagInput
      const args = (command.args ?? {}) as ArgInput
      throw usageFault(error, { flags, args, argv: this.argv, command: this.name ?? 'COMMAND' })
    }
  }

  /** Removes `--` and the words after it from the command line, and returns those words. `example` is for the hint. */
  protected takeCommand(example: string): readonly string[] | undefined {
    const end = this.argv.indexOf('--')
    if (end === -1) return undefined
    const command = this.argv.slice(end + 1)
    this.argv = this.argv.slice(0, end)
    if (command.length > 0) return command
    throw new Fault('Usage', 'no command follows --', { hints: [`For example: ${example}`] })
  }

  /** Determined without parsing, because parsing may be what failed. */
  protected isJsonRequested(): boolean {
    const end = this.argv.indexOf('--')
    const flags = end === -1 ? this.argv : this.argv.slice(0, end)
    return flags.includes('--json') || this.format === 'json'
  }

  protected get isQuiet(): boolean {
    return this.argv.includes('--quiet') || this.argv.includes('-q')
  }

  private get format(): string | undefined {
    return requestedOutput(this.argv)?.toLowerCase()
  }

  /** How this command prints lists and documents: `--output table` has a screen in a pipe too, and `tsv` none. */
  protected get output(): ListOutput {
    const { isTTY, colour, unicode } = this.io.stdout
    const columns = columnsOf(this.io.stdout, this.io.env)
    const screen = { isTTY: this.format === 'table' || (isTTY && this.format !== 'tsv'), columns, colour, unicode }
    const header = !this.argv.includes('--no-header')
    return { json: this.isJsonRequested(), screen, argv: this.argv, header }
  }

  /** Writes everything except the answer to stderr. Silent with --quiet. */
  protected say(text: string): void {
    if (!this.isQuiet) this.writeNote(text)
  }

  /** Writes to stderr also with --quiet. On a terminal, the lines end at spaces. */
  protected writeNote(text: string): void {
    if (this.long !== '') {
      this.notesBelow.push(text)
      return
    }
    this.io.stderr.write(this.laidOut?.(text, this.io.stderr) ?? `${text}\n`)
  }

  /** Writes the answer to stdout: JSON, or text for people unless it has another form. */
  protected print(text: string, form: TextForm = this.isJsonRequested() ? 'json' : 'text'): void {
    this.io.stdout.write(text.endsWith('\n') ? text : `${text}\n`, form)
  }

  /** Writes a list to stdout in parts, as fast as its reader takes them. Ends when nobody reads. */
  protected async printParts(
    parts: AsyncIterable<string>,
    signal: AbortSignal,
    form: TextForm = this.listForm,
  ): Promise<void> {
    let buffered = ''
    let pager: Pager | undefined
    const flush = async (): Promise<boolean> => {
      const text = buffered
      buffered = ''
      pager ??= await this.pagerFor(text, form)
      return pager ? await pager.write(text) : this.io.stdout.write(text, form)
    }
    try {
      for await (const part of parts) {
        buffered += part
        if (buffered.length < charactersAtOnce) continue
        if (!(await flush())) return
        if (!pager) await accepting(this.io.stdout.stream)
        signal.throwIfAborted()
      }
      if (buffered !== '') await flush()
    } finally {
      await pager?.end()
    }
  }

  private async pagerFor(text: string, form: TextForm): Promise<Pager | undefined> {
    if (this.io.stdout.rows === undefined) return undefined
    const { isLonger, openPager } = await import('../io/pager.ts')
    return isLonger(text, this.io) ? await openPager(this.io, this.argv, form) : undefined
  }

  /**
   * Writes a list, or a record of one, to stdout, or keeps it for the pager until the command ends. In a pipe, a list
   * without rows and header is empty.
   */
  protected printList(text: string): void {
    const { rows } = this.io.stdout
    const isLong = rows !== undefined && text.split('\n').length >= rows
    if (isLong) this.long += `${text}\n`
    else if (text !== '') this.print(text, this.listForm)
  }

  private get listForm(): TextForm {
    return this.isJsonRequested() ? 'json' : 'records'
  }
}

/** Characters that are written together. */
const charactersAtOnce = 65_536

/** Resolves when a stream accepts more, or never will. */
export async function accepting(stream: Writable): Promise<void> {
  if (!stream.writableNeedDrain || stream.destroyed) return
  const events = ['drain', 'error', 'close']
  await new Promise<void>((resolve) => {
    const done = (): void => {
      for (const event of events) stream.off(event, done)
      resolve()
    }
    for (const event of events) stream.on(event, done)
  })
}

/** The value of `--output` or `-o`, as written, without parsing the rest. */
export function requestedOutput(argv: readonly string[]): string | undefined {
  const end = argv.indexOf('--')
  const flags = end === -1 ? argv : argv.slice(0, end)
  const at = flags.findLastIndex((flag) => /^(?:--output(?:=|$)|-o)/.test(flag))
  const [, inside] = /^(?:--output=|-o=?)(.+)$/.exec(flags[at] ?? '') ?? []
  return inside ?? flags[at + 1]
}

/** Runs a command by its id. */
export async function runCommand(
  load: () => Promise<CommandClass>,
  argv: readonly string[],
  io: Io,
  id?: string,
): Promise<void> {
  try {
    const Command = await load()
    const command = new Command(argv, io)
    command.name = id?.replaceAll(':', ' ')
    await command.run()
  } catch (error) {
    await settle(error, { json: argv.includes('--json'), debug: argv.includes('--debug') }, io)
  }
}

/**
 * A signal that aborts at the first SIGINT or SIGTERM, with a Fault that names it. A second one ends the program at
 * once.
 */
export function interruption(signals: Signals): { readonly signal: AbortSignal; readonly release: () => void } {
  const controller = new AbortController()
  const release = signals.take(['SIGINT', 'SIGTERM'], (name) => {
    if (controller.signal.aborted) signals.end(name)
    else controller.abort(new Fault('Interrupted', name === 'SIGINT' ? 'Interrupted' : 'Ended by SIGTERM'))
  })
  return { signal: controller.signal, release }
}
