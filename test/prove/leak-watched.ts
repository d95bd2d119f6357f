import { held, kept } from './leak-figures.ts'

/** Preloaded into the program under test: says, when asked, what it holds and keeps. */
process.on('message', (what: 'held' | 'kept') => {
  const say = (figures: object): void => void process.send?.(figures)
  if (what === 'held') say(held())
  else void kept().then(say)
})
// A program that stops must not be kept by who watches it.
process.channel?.unref()
