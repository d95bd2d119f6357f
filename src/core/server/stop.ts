import type { Server } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises'
import type { ServerContext } from './context.ts'
import { stopping } from './handle.ts'
import { answerRaw } from './parser-faults.ts'

/** How often a stopping server checks whether every request is answered. Milliseconds. */
const lookEveryMs = 50
/** How long new connections may keep a stopping server from closing its listener. Milliseconds. */
const maxAcceptMs = 1_000

/**
 * Stops a server without losing a request that has reached this machine (S9). Resolves when every connection is
 * closed: within 10 s, or within 3 s after a drain delay that is longer than 7 s.
 *
 * 1. From now on, readiness and every new request get 503. The server still listens, because load balancers need a
 *    moment to notice.
 * 2. The listener closes as soon as the system's accept queue is empty, because closing it resets the connections that
 *    wait there. Answers are held back until then.
 * 3. The server reads and answers what the accepted connections still send, until every call in progress is answered
 *    and nothing more arrives for a moment: closing a connection with unread bytes would reset it.
 * 4. After 8 s it cancels the checks and calls in progress and answers them 503. What is still open a moment later is
 *    closed without an answer.
 */
export async function drain(server: Server, serverContext: ServerContext): Promise<void> {
  const { limits, connections, open } = serverContext
  const started = performance.now()
  const elapsed = (): number => performance.now() - started
  serverContext.draining = true

  // A long drain delay postpones the closing of connections, so that the last ones get their share of time too.
  const stretch = Math.max(0, limits.drainDelayMs + 2 * limits.quietMs - limits.cancelAfterMs)
  const graceEndsMs = limits.cancelAfterMs + stretch
  const closeAfterMs = limits.closeAfterMs + stretch
  const cancel = setTimeout(() => {
    for (const { cancel } of open) cancel(stopping())
    serverContext.runtime.cancelRuns?.()
  }, limits.cancelAfterMs)
  const close = setTimeout(() => closeAll(serverContext), closeAfterMs)

  const quiet = watchForQuiet(serverContext)
  try {
    await pause(limits.drainDelayMs)
    const answers = holdAnswers(serverContext)
    await emptyAcceptQueue(serverContext)
    const closed = stopListening(server)
    answers.release()
    while (connections.transports.size > 0) {
      await pause(lookEveryMs)
      const mayEnd = quiet.isQuiet() || elapsed() >= graceEndsMs
      if (open.size > 0 || !mayEnd) continue
      endConnections(server, serverContext)
      break
    }
    await closed
  } finally {
    quiet.stop()
    clearTimeout(cancel)
    clearTimeout(close)
    // Stops the timer with which Node looks for slow requests. Nothing else is left to close.
    server.close()
  }
}

/**
 * Holds answers back while the accept queue empties: an answered caller may reconnect at once, and enough such callers
 * would keep the queue from ever being empty.
 */
function holdAnswers(server: ServerContext): { readonly release: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  server.hold = promise
  return {
    release: () => {
      server.hold = undefined
      resolve()
    },
  }
}

/**
 * Resolves when the system's accept queue is empty. Every turn of the event loop accepts at least one waiting
 * connection, so a turn that accepts none means that none is left.
 */
async function emptyAcceptQueue({ connections }: ServerContext): Promise<void> {
  const ends = performance.now() + maxAcceptMs
  let before: number
  do {
    before = connections.accepted()
    await turn()
  } while (connections.accepted() !== before && performance.now() < ends)
}

/**
 * Closes only the listener; resolves when the last connection has closed. `close` of an HTTP server would also destroy
 * connections that it considers idle: those whose next request is still unread, and those whose answer is not yet sent
 * completely.
 */
function stopListening(server: Server): Promise<void> {
  return new Promise((resolve) => NetServer.prototype.close.call(server, () => resolve()))
}

/**
 * Watches whether anything arrives on any connection. Counts polls, not milliseconds: each poll runs after the event
 * loop has read what had arrived, however long it was blocked.
 */
function watchForQuiet({ connections, limits }: ServerContext): {
  readonly isQuiet: () => boolean
  readonly stop: () => void
} {
  let received = 0
  let quietLooks = 0
  const look = async (): Promise<void> => {
    await turn()
    let total = connections.accepted()
    for (const socket of connections.transports) total += socket.bytesRead
    quietLooks = total === received ? quietLooks + 1 : 0
    received = total
  }
  const timer = setInterval(look, lookEveryMs)
  return {
    isQuiet: () => quietLooks * lookEveryMs >= limits.quietMs,
    stop: () => clearInterval(timer),
  }
}

/** Closes connections without a call in progress. A connection in the middle of a request gets a 503. */
function endConnections(server: Server, serverContext: ServerContext): void {
  const { transports, speakers } = serverContext.connections
  // Node knows which connections are between two requests.
  server.closeIdleConnections()
  const speaking = [...speakers].filter((socket) => !socket.destroyed)
  const peers = new Set(speaking.map(peerOf))
  for (const socket of speaking) {
    // These have received their last answer and get a moment to read it.
    if (serverContext.silenced.has(socket)) continue
    if (socket.bytesRead === 0 || !socket.writable) {
      socket.destroy()
      continue
    }
    serverContext.silenced.add(socket)
    answerRaw(serverContext, socket, stopping(), 'other')
  }
  // Only stalled TLS handshakes are left.
  for (const socket of transports) if (!peers.has(peerOf(socket))) socket.destroy()
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

function closeAll({ connections: { speakers, transports } }: ServerContext): void {
  for (const socket of [...speakers, ...transports]) socket.destroy()
}
