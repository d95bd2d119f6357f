import type { WriteStream } from 'node:tty'

/**
 * One line on a terminal's stderr while something takes long, gone when it ends. Nothing in a pipe,
 * in CI or under TERM=dumb. ACCESSIBLE=1 gets a still line instead of a moving one.
 */
export function progress(
  stream: NodeJS.WriteStream | WriteStream,
  label: string,
  wanted: boolean,
): { readonly update: (text: string) => void; readonly stop: () => void } {
  const still = Boolean(process.env.ACCESSIBLE)
  if (!wanted || !stream.isTTY || process.env.CI || process.env.TERM === 'dumb')
    return { update: () => {}, stop: () => {} }
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
