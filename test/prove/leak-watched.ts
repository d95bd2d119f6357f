import { measureHoldings, measureMemory } from './leak-figures.ts'

/** Preloaded into the program under test: says, when asked, what it holds and keeps. */
process.on('message', (what: 'holdings' | 'memory') => {
  const say = (figures: object): void => void process.send?.(figures)
  if (what === 'holdings') say(measureHoldings())
  else void measureMemory().then(say)
})
// A program that stops must not be kept by who watches it.
process.channel?.unref()
