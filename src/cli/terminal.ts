import { fstatSync } from 'node:fs'
import { styleText } from 'node:util'

export type ColourFlag = 'auto' | 'always' | 'never'

type Environment = Readonly<Record<string, string | undefined>>

const isSet = (value: string | undefined): value is string => value !== undefined && value !== ''
const off = (value: string): boolean => value === '0' || value.toLowerCase() === 'false'

/**
 * The one place that decides about colour, for one stream: the flag, then NO_COLOR, then
 * FORCE_COLOR and CLICOLOR_FORCE, then what the terminal is. An empty variable counts as not set
 * (no-color.org).
 */
export function wantsColour(flag: ColourFlag, env: Environment, isTTY: boolean): boolean {
  if (flag !== 'auto') return flag === 'always'
  if (isSet(env['NO_COLOR'])) return false
  if (isSet(env['FORCE_COLOR'])) return !off(env['FORCE_COLOR'])
  if (isSet(env['CLICOLOR_FORCE'])) return !off(env['CLICOLOR_FORCE'])
  if (!isTTY || env['TERM'] === 'dumb') return false
  return !(isSet(env['CLICOLOR']) && off(env['CLICOLOR']))
}

const flags: readonly string[] = ['auto', 'always', 'never'] satisfies readonly ColourFlag[]
let chosen: ColourFlag = 'auto'

/**
 * Takes `--color` from the command line, before it is parsed: what does not parse is said in colour
 * too. The choice belongs to the process, as the environment does. A wrong value is the parser's to
 * refuse.
 */
export function chooseColour(argv: readonly string[]): void {
  const end = argv.indexOf('--')
  const own = end === -1 ? argv : argv.slice(0, end)
  const at = own.findLastIndex((word) => word === '--color' || word.startsWith('--color='))
  const value = own[at]?.startsWith('--color=') ? own[at].slice('--color='.length) : own[at + 1]
  const match = flags.find((flag) => at !== -1 && flag === value?.toLowerCase())
  chosen = (match as ColourFlag | undefined) ?? 'auto'
}

const descriptors = { stdout: 1, stderr: 2 } as const

/** Whether a person reads this stream. A pipe or a file is known without the stream, which costs 4 ms to make. */
export function isTerminal(name: keyof typeof descriptors): boolean {
  try {
    if (!fstatSync(descriptors[name]).isCharacterDevice()) return false
  } catch {
    // What it is, Node's stream may still tell.
  }
  return process[name].isTTY === true
}

/** The decision for one stream of this process. */
export const useColour = (stream: { readonly isTTY?: boolean }): boolean =>
  wantsColour(chosen, process.env, stream.isTTY === true)

type Format = Exclude<Parameters<typeof styleText>[0], readonly unknown[]>
const styles = {
  good: ['green'],
  caution: ['yellow'],
  bad: ['bold', 'red'],
  strong: ['bold'],
  dim: ['dim'],
} satisfies Record<string, Format[]>
export type Style = keyof typeof styles

/** Styles text, or leaves it alone. The stream was judged by `wantsColour`, so Node does not judge again. */
export type Paint = (style: Style | undefined, text: string) => string

export const painter =
  (colour: boolean): Paint =>
  (style, text) =>
    !colour || style === undefined || text === '' ? text : styleText(styles[style], text, { validateStream: false })

/** True when the terminal shows `✓`, `✗`, `·` and `…`; else plain letters stand for them. */
export function showsUnicode(env: Environment, platform: NodeJS.Platform): boolean {
  if (platform === 'win32') {
    return (
      isSet(env['WT_SESSION']) ||
      isSet(env['TERM_PROGRAM']) ||
      env['TERM'] === 'xterm-256color' ||
      isSet(env['ConEmuTask'])
    )
  }
  // The Linux console has 512 glyphs, and these are not among them.
  if (env['TERM'] === 'linux') return false
  const locale = [env['LC_ALL'], env['LC_CTYPE'], env['LANG']].find(isSet)
  return locale === undefined || /utf-?8/i.test(locale)
}

/**
 * One line on a terminal's stderr while something takes long, gone when it ends. Nothing in a pipe,
 * in CI or under TERM=dumb. ACCESSIBLE=1 gets a still line instead of a moving one.
 */
export function progress(
  label: string,
  enabled: boolean,
): { readonly update: (text: string) => void; readonly stop: () => void } {
  const still = Boolean(process.env.ACCESSIBLE)
  if (!enabled || process.env.CI || process.env.TERM === 'dumb' || !isTerminal('stderr'))
    return { update: () => {}, stop: () => {} }
  const stream = process.stderr
  const started = performance.now()
  let text = label
  let drawn = false
  const draw = (): void => {
    const seconds = ((performance.now() - started) / 1_000).toFixed(1)
    const line = still ? `${text} …` : `${text} … ${seconds} s`
    stream.write(`\r\u001b[2K${line.slice(0, Math.max(20, (stream.columns ?? 80) - 1))}`)
    drawn = true
  }
  // What answers at once needs no line.
  const first = setTimeout(draw, 250)
  const timer = still ? undefined : setInterval(draw, 200)
  return {
    update: (next) => {
      text = next
      if (drawn) draw()
    },
    stop: () => {
      clearTimeout(first)
      clearInterval(timer)
      if (drawn) stream.write('\r\u001b[2K')
    },
  }
}
