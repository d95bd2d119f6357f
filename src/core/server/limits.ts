/** The limits for the cost of one caller and for the duration of a shutdown (S3, S9). Times are in milliseconds. */
export type ServerLimits = {
  /** Time to receive complete headers; then 408. */
  readonly headersMs: number
  /** Time to receive a complete request; then 408. */
  readonly requestMs: number
  /** How often the server enforces these two. */
  readonly checkEveryMs: number
  /** How long an idle connection is kept for the next request. */
  readonly keepAliveMs: number
  /**
   * A connection without traffic for this long is closed; no run takes as long. In a batch, each request gets this
   * time.
   */
  readonly silenceMs: number
  /** Bytes of request line and headers; 431 above. */
  readonly headerBytes: number
  /** Headers of one request; 431 above. */
  readonly headerCount: number
  /** Simultaneous connections; further ones are answered probes only. */
  readonly connections: number
  /**
   * The same per address, and for all of loopback together. Does not apply to processes of this server's account on this
   * machine, and trusted proxies.
   */
  readonly connectionsPerAddress: number
  /** Connections beyond these two limits that are answered a probe, and how long each of them may take. */
  readonly probeConnections: number
  readonly probeMs: number
  /** How long a connection from loopback may be open before anything arrives on it, once half of them are in use. */
  readonly silentMs: number
  /** How often, at most, the accounts of the connections from loopback are looked up together. */
  readonly searchEveryMs: number
  /** Requests that may wait for their answers on one connection. A connection with more is closed. */
  readonly maxPipelined: number
  /** Bytes of answers that wait unread on a connection. Above, it gets its next answer when they have been read. */
  readonly waitingBytes: number
  /** The same of all connections together. Above, the connection that has waited for longest is closed. */
  readonly waitingBytesOfAll: number
  /**
   * After an answer to a request with an unread body: how long the connection stays open, and how much is discarded.
   */
  readonly lingerMs: number
  readonly lingerBytes: number
  /** The time that the store has to answer for /readyz. */
  readonly readyMs: number
  /** How long a stopping server still accepts connections, so that load balancers notice that it is not ready. */
  readonly drainDelayMs: number
  /** A stopping server treats its connections as idle after it has received nothing for this long. */
  readonly quietMs: number
  /** After this time a stopping server cancels the calls in progress and answers them 503. */
  readonly cancelAfterMs: number
  /** After this time it closes all remaining connections. */
  readonly closeAfterMs: number
}

export const serverLimits: ServerLimits = {
  headersMs: 10_000,
  requestMs: 30_000,
  checkEveryMs: 2_000,
  keepAliveMs: 5_000,
  silenceMs: 180_000,
  headerBytes: 8 * 1024,
  headerCount: 64,
  connections: 4_096,
  connectionsPerAddress: 512,
  probeConnections: 16,
  probeMs: 2_000,
  silentMs: 2_000,
  searchEveryMs: 1_000,
  maxPipelined: 64,
  waitingBytes: 256 * 1024,
  waitingBytesOfAll: 32 * 1024 * 1024,
  lingerMs: 1_000,
  lingerBytes: 8 * 1024 * 1024,
  readyMs: 2_000,
  drainDelayMs: 300,
  quietMs: 500,
  cancelAfterMs: 8_000,
  closeAfterMs: 9_500,
}
