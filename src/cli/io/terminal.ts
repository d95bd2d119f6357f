import { styleText } from 'node:util'
import { type TextForm, withoutCommands } from '../../core/base/sanitize.ts'
import type { ColourFlag, Io, ProcessEnvironment, Screen } from './io.ts'

const isSet = (value: string | undefined): value is string => value !== undefined && value !== ''
const off = (value: string): boolean => value === '0' || value.toLowerCase() === 'false'

/**
 * Decides about colour for one stream: first the flag, then NO_COLOR, then FORCE_COLOR and CLICOLOR_FORCE, then whether
 * it is a terminal. An empty variable counts as not set (no-color.org).
 */
export function usesColour(flag: ColourFlag, env: ProcessEnvironment, isTTY: boolean): boolean {
  if (flag !== 'auto') return flag === 'always'
  if (isSet(env['NO_COLOR'])) return false
  if (isSet(env['FORCE_COLOR'])) return !off(env['FORCE_COLOR'])
  if (isSet(env['CLICOLOR_FORCE'])) return !off(env['CLICOLOR_FORCE'])
  if (!isTTY || env['TERM'] === 'dumb') return false
  return !(isSet(env['CLICOLOR']) && off(env['CLICOLOR']))
}

const flags: readonly string[] = ['auto', 'always', 'never'] satisfies readonly ColourFlag[]

/**
 * Reads `--color` before the command line is parsed, so that parse errors are coloured too. The parser refuses wrong
 * values.
 */
export function colourOf(argv: readonly string[]): ColourFlag {
  const end = argv.indexOf('--')
  const own = end === -1 ? argv : argv.slice(0, end)
  const at = own.findLastIndex((word) => word === '--color' || word.startsWith('--color='))
  const value = own[at]?.startsWith('--color=') ? own[at].slice('--color='.length) : own[at + 1]
  const match = flags.find((flag) => at !== -1 && flag === value?.toLowerCase())
  return (match as ColourFlag | undefined) ?? 'auto'
}

/** The place of a stream as the environment shows it, and the form of the text that is written to it. */
export abstract class OutputScreen implements Screen {
  readonly #env: ProcessEnvironment
  readonly #platform: NodeJS.Platform
  readonly #flag: () => ColourFlag
  #used = false

  constructor(env: ProcessEnvironment, platform: NodeJS.Platform, flag: () => ColourFlag) {
    this.#env = env
    this.#platform = platform
    this.#flag = flag
  }

  abstract get isTTY(): boolean
  abstract get columns(): number | undefined
  abstract get isFile(): boolean
  protected abstract send(data: Uint8Array): boolean

  get used(): boolean {
    return this.#used
  }

  write(data: string | Uint8Array, form: TextForm = 'text'): boolean {
    this.#used = true
    if (typeof data !== 'string') return this.send(data)
    const isExact = form === 'records' && this.isFile
    return this.send(Buffer.from(isExact ? data : withoutCommands(data, form)))
  }

  get colour(): boolean {
    return usesColour(this.#flag(), this.#env, this.isTTY)
  }

  get unicode(): boolean {
    return showsUnicode(this.#env, this.#platform)
  }
}

/** Columns of a table where there is no terminal, as in the log of a CI job. */
const columnsInPipe = 120

/** The width of what is written for people. */
export const columnsOf = ({ columns }: Pick<Screen, 'columns'>, env: ProcessEnvironment): number =>
  columns ?? (Number(env['COLUMNS']) || columnsInPipe)

type Format = Exclude<Parameters<typeof styleText>[0], readonly unknown[]>
const styles = {
  good: ['green'],
  caution: ['yellow'],
  bad: ['bold', 'red'],
  strong: ['bold'],
  dim: ['dim'],
} satisfies Record<string, Format[]>
export type Style = keyof typeof styles

/** Styles text, or returns it unchanged. `usesColour` has decided already, so Node does not decide again. */
export type Paint = (style: Style | undefined, text: string) => string

export const painter =
  (colour: boolean): Paint =>
  (style, text) =>
    !colour || style === undefined || text === '' ? text : styleText(styles[style], text, { validateStream: false })

/** True when the terminal can show `✓`, `✗`, `·` and `…`; otherwise ASCII replaces them. */
export function showsUnicode(env: ProcessEnvironment, platform: NodeJS.Platform): boolean {
  if (platform === 'win32') {
    return (
      isSet(env['WT_SESSION']) ||
      isSet(env['TERM_PROGRAM']) ||
      env['TERM'] === 'xterm-256color' ||
      isSet(env['ConEmuTask'])
    )
  }
  // The Linux console has only 512 glyphs, without these.
  if (env['TERM'] === 'linux') return false
  const locale = [env['LC_ALL'], env['LC_CTYPE'], env['LANG']].find(isSet)
  return locale === undefined || /utf-?8/i.test(locale)
}

/** A text, or what to show next in a number of columns. */
export type ProgressText = string | ((columns: number) => string)

/**
 * Shows one line on a terminal's stderr while something takes long, and removes it at the end. Shows nothing in a pipe,
 * in CI or under TERM=dumb. With ACCESSIBLE=1 the line does not move.
 */
export function progress(
  label: ProgressText,
  enabled: boolean,
  { env, stderr, clock }: Pick<Io, 'env' | 'stderr' | 'clock'>,
): {
  /** Whether a line is shown. */
  readonly live: boolean
  readonly update: (text: ProgressText) => void
  readonly stop: () => void
} {
  const still = Boolean(env['ACCESSIBLE'])
  if (!enabled || env['CI'] || env['TERM'] === 'dumb' || !stderr.isTTY) {
    return { live: false, update: () => {}, stop: () => {} }
  }
  const began = clock.elapsed()
  let text: ProgressText = label
  let drawn = false
  const draw = (): void => {
    const seconds = ((clock.elapsed() - began) / 1_000).toFixed(1)
    const time = still ? ' …' : ` … ${seconds} s`
    const available = Math.max(20, (stderr.columns ?? 80) - 1) - time.length
    const content = typeof text === 'string' ? text : text(available)
    stderr.write(`\r\u001b[2K${content.slice(0, available)}${time}`)
    drawn = true
  }
  // Fast operations need no line.
  const first = setTimeout(draw, 250)
  const timer = still ? undefined : setInterval(draw, 200)
  return {
    live: true,
    update: (next) => {
      text = next
      if (drawn) draw()
    },
    stop: () => {
      clearTimeout(first)
      clearInterval(timer)
      if (drawn) stderr.write('\r\u001b[2K')
    },
  }
}
