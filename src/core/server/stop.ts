import type { Server } from 'node:http'
import { stopping } from './handle.ts'
import type { Site } from './site.ts'

/** How often a stopping server looks whether everything is answered. Milliseconds. */
const lookEveryMs = 50

/**
 * S9: readiness is 503 from now on, nothing new is accepted, what is under way is answered with
 * `Connection: close`; at 8 s the calls under way are cancelled and answered 503, and before 10 s
 * whatever is still open is closed.
 */
export function drain(server: Server, site: Site): Promise<void> {
  site.draining = true
  return new Promise((resolve) => {
    // What is left when nothing is under way are connections that never finished a request.
    const look = setInterval(() => {
      if (site.open.size === 0) server.closeAllConnections()
    }, lookEveryMs)
    const cancel = setTimeout(() => {
      for (const { cancel } of site.open) cancel(stopping())
    }, site.limits.cancelAfterMs)
    const close = setTimeout(() => server.closeAllConnections(), site.limits.closeAfterMs)
    server.close(() => {
      clearInterval(look)
      clearTimeout(cancel)
      clearTimeout(close)
      resolve()
    })
  })
}
