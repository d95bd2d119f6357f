import { sanitizeLine } from '../../core/base/sanitize.ts'
import type { Entry } from '../../core/checks/reports/index.ts'
import type { Io } from '../io/io.ts'
import { columnsOf, painter } from '../io/terminal.ts'
import { marks } from '../render/table.ts'
import { renderHealth } from './screen.ts'
import type { Show, WatchWishes } from './watch-plan.ts'
import { type Demand, firstView, frameLines, keys, keysIn, listHeight, rowsOf, type View } from './watch-screen.ts'

/** The parts of the screen besides the rounds. `next`: the text about the next round, in so many columns. */
export type ScreenOptions = {
  readonly io: Io
  readonly title: string
  readonly failuresOnly: boolean
  readonly atServer: boolean
  readonly wishes: WatchWishes
  readonly next: (columns: number) => string
}

/** Another page of the terminal, without cursor and without line breaks, and back. */
const enter = '\u001b[?1049h\u001b[?25l\u001b[?7l'
const leave = '\u001b[?7h\u001b[?25h\u001b[?1049l'
/** Milliseconds between two looks at the clock. */
const tickMs = 1_000
/** Milliseconds after which a stop that did not take place is over: nobody may stop a program that no shell waits for. */
const stopMs = 200

/** Shows the rounds on a terminal, in the same lines, until `close`. Whatever ends svc, the terminal is as it was. */
export function liveScreen({ io, title, failuresOnly, atServer, wishes, next }: ScreenOptions): Show {
  const { stdin, stdout, signals, clock } = io
  let view: View = firstView(failuresOnly)
  let watched: Parameters<Show['answered']>[0] | undefined
  let entries: readonly Entry[] = []
  let onScreen: readonly string[] = []
  let releases: readonly (() => void)[] | undefined
  // Bytes are written as they are: no log of CI is a terminal that moves.
  const write = (text: string): void => void stdout.write(Buffer.from(text))
  const report = (): readonly string[] | undefined => {
    const subject = view.report === undefined ? undefined : watched?.subjects.get(view.report)
    if (!subject) return undefined
    const only = entries.flatMap((entry) => reportOn(entry, subject.type, subject.name)).slice(0, 1)
    if (only.length === 0) return [`${subject.name}: no answer`]
    const { colour, unicode } = stdout
    const text = renderHealth(only, { width: columnsOf(stdout, io.env), colour, unicode, detail: 'verbose', atServer })
    return text.trimEnd().split('\n')
  }
  const draw = (): void => {
    if (!releases) return
    const height = stdout.rows ?? 24
    const lines = report()
    view = { ...view, scroll: Math.min(view.scroll, Math.max(0, (lines?.length ?? 0) - listHeight(height))) }
    const frame = { watched, view, height, now: clock.now().getTime(), title, next, report: lines }
    const look = { width: columnsOf(stdout, io.env), marks: marks(stdout.unicode), paint: painter(stdout.colour) }
    const drawn = frameLines(frame, look)
    const changed = drawn.flatMap((line, at) => (line === onScreen[at] ? [] : `\u001b[${at + 1};1H\u001b[2K${line}`))
    if (changed.length > 0) write(changed.join(''))
    onScreen = drawn
  }
  const redraw = (before = ''): void => {
    onScreen = []
    write(`${before}\u001b[2J`)
    draw()
  }
  const resized = (): void => redraw()

  const demands: Readonly<Record<Demand, () => void>> = {
    ...wishes,
    // A second ctrl-C has to reach a terminal that is as it was.
    interrupt: () => ended('SIGINT'),
    abort: () => ended('SIGQUIT'),
    suspend: () => suspend(),
  }
  const ended = (name: 'SIGINT' | 'SIGQUIT'): void => {
    close()
    signals.type(name)
  }
  const typed = (sent: Buffer | string): void => {
    for (const key of keysIn(String(sent))) {
      const action = Object.hasOwn(keys, key) ? keys[key] : undefined
      const rows = watched ? rowsOf(watched, view, listHeight(stdout.rows ?? 24)) : []
      if (typeof action === 'function') view = action(view, rows)
      else if (action !== undefined) demands[action]()
    }
    draw()
  }
  const typing = stdin.isTTY ? stdin.stream : undefined
  let resuming: NodeJS.Timeout | undefined
  const suspend = (): void => {
    close()
    signals.type('SIGTSTP')
    resuming = setTimeout(open, stopMs)
  }
  const open = (): void => {
    const timer = setInterval(draw, tickMs)
    const stopped = signals.take(['SIGTSTP'], suspend)
    // Somebody stopped svc and let it go on: the shell has used the terminal meanwhile.
    const continued = signals.take(['SIGCONT'], () => {
      typing?.setRawMode?.(false)
      typing?.setRawMode?.(true)
      redraw(enter)
    })
    const killed = signals.take(['SIGHUP', 'SIGQUIT'], (name) => {
      close()
      signals.end(name)
    })
    stdout.stream.on('resize', resized)
    typing?.setRawMode?.(true)
    typing?.on('data', typed).on('end', wishes.quit).resume()
    releases = [() => clearInterval(timer), stopped, continued, killed]
    redraw(enter)
  }
  const close = (): void => {
    clearTimeout(resuming)
    if (!releases) return
    for (const release of releases) release()
    releases = undefined
    stdout.stream.off('resize', resized)
    typing?.off('data', typed).off('end', wishes.quit).pause()
    typing?.setRawMode?.(false)
    write(leave)
  }

  const { reportUncaught } = io
  io.reportUncaught = async (error) => {
    close()
    await reportUncaught(error)
  }
  open()
  return {
    answered: (next, { entries: answers }) => {
      watched = next
      entries = answers
      draw()
    },
    close: () => {
      close()
      io.reportUncaught = reportUncaught
    },
  }
}

/** The part of an answer about one monitor, or the whole of it. Without a type: about the machine. */
function reportOn({ Run: run, Response: response, ...entry }: Entry, type: string, name: string): readonly Entry[] {
  if (type !== '' && sanitizeLine(entry.ServerType) !== type) return []
  if (name === '') return [{ ...entry, Run: run, Response: response }]
  const monitors = run?.monitors.filter((one) => sanitizeLine(one.name ?? one.kind) === name)
  const MonitorSummaries = response?.MonitorSummaries?.filter((one) => sanitizeLine(one.MonitorName ?? '') === name)
  if ((monitors ?? MonitorSummaries ?? []).length === 0) return []
  return [
    { ...entry, Run: run && monitors && { ...run, monitors }, Response: response && { ...response, MonitorSummaries } },
  ]
}
