import type { Holder } from './world.ts'

/** Preloaded into the program under test: asked for it, frees what can be freed and says what is still held. */
process.on('message', () => {
  globalThis.gc?.()
  globalThis.gc?.()
  const { rss, heapUsed, external } = process.memoryUsage()
  const resources = process.getActiveResourcesInfo()
  const sockets = resources.filter((name) => name === 'TCPSocketWrap').length
  process.send?.({ rss, heapUsed, external, sockets } satisfies Omit<Holder, 'files'>)
})
// A program that stops must not be kept by who watches it.
process.channel?.unref()
