import type { Server } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { setTimeout as pause, setImmediate as turn } from 'node:timers/promises'
import type { ServerContext } from './context.ts'
import { stopping } from './handle.ts'
import { answerRaw } from './parser-faults.ts'

/** How often a stopping server looks whether everything is answered. Milliseconds. */
const lookEveryMs = 50
/** How long new connections may keep a stopping server from closing its listener. Milliseconds. */
const maxAcceptMs = 1_000

/**
 * S9: stops a server without losing a request that reached this machine. Resolves when every
 * connection is closed: within 10 s, or within 3 s after a drain delay that is longer than 7 s.
 *
 * 1. Readiness is 503 from now on, and so is every new request; the server still listens, because
 *    balancers need a moment to notice.
 * 2. The listener closes as soon as no connection waits in the system's accept queue: the system
 *    resets those that wait there when it closes. Answers wait that long.
 * 3. What the accepted connections still send is read and answered, until every call under way is
 *    answered and nothing more arrives for a moment: a connection closed with unread bytes is reset.
 * 4. At 8 s the checks and calls under way are cancelled and answered 503; what is still open a
 *    moment later is closed unanswered.
 */
export async function drain(server: Server, serverContext: ServerContext): Promise<void> {
  const { limits, connections, open } = serverContext
  const started = performance.now()
  const elapsed = (): number => performance.now() - started
  serverContext.draining = true

  // A drain delay that outlasts the usual times leaves those connections that came last their share too.
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
    // Ends the timer with which Node looks for slow requests; nothing else is left to close.
    server.close()
  }
}

/**
 * Keeps answers back while the accept queue is emptied: whoever is answered may connect again at
 * once, and enough such callers would keep the queue from ever being empty.
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
 * Returns when the system holds no connection that this process has not accepted. Every turn of the
 * event loop accepts at least one of them, so that a turn without any says that none is left.
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
 * Closes the listener and nothing else; resolves when the last connection has closed. `close` of an
 * HTTP server also destroys connections that it takes for idle: those whose next request has not
 * been read yet, and those that have not received their whole answer.
 */
function stopListening(server: Server): Promise<void> {
  return new Promise((resolve) => NetServer.prototype.close.call(server, () => resolve()))
}

/**
 * Looks whether anything arrives on any connection. Looks are counted, not milliseconds: each comes
 * after the event loop has read what had arrived, however long it was kept from doing so.
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

/** Closes connections on which no call is under way; one that broke off within a request gets a 503. */
function endConnections(server: Server, serverContext: ServerContext): void {
  const { transports, speakers } = serverContext.connections
  // Node knows which connections are between two requests.
  server.closeIdleConnections()
  const speaking = [...speakers].filter((socket) => !socket.destroyed)
  const peers = new Set(speaking.map(peerOf))
  for (const socket of speaking) {
    // These have their last answer, and a moment to read it.
    if (serverContext.silenced.has(socket)) continue
    if (socket.bytesRead === 0 || !socket.writable) {
      socket.destroy()
      continue
    }
    serverContext.silenced.add(socket)
    answerRaw(serverContext, socket, stopping(), 'other')
  }
  // What is left are TLS handshakes that do not go on.
  for (const socket of transports) if (!peers.has(peerOf(socket))) socket.destroy()
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

function closeAll({ connections: { speakers, transports } }: ServerContext): void {
  for (const socket of [...speakers, ...transports]) socket.destroy()
}
