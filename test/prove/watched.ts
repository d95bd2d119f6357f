import type { ProcessResources } from './fixture.ts'

/** Preloaded into the program under test: on request, frees what can be freed and reports what is still in use. */
process.on('message', () => {
  globalThis.gc?.()
  globalThis.gc?.()
  const { rss, heapUsed, external } = process.memoryUsage()
  const resources = process.getActiveResourcesInfo()
  const sockets = resources.filter((name) => name === 'TCPSocketWrap').length
  process.send?.({ rss, heapUsed, external, sockets } satisfies Omit<ProcessResources, 'files'>)
})
// A program that stops must not be kept by who watches it.
process.channel?.unref()
