/** What one caller may cost, and how long shutting down may take (S3, S9). Times are milliseconds. */
export type ServerLimits = {
  /** Until the headers of a request are complete: 408 after that. */
  readonly headersMs: number
  /** Until a whole request is read: 408 after that. */
  readonly requestMs: number
  /** How often those two are looked at. */
  readonly checkEveryMs: number
  /** An idle connection is kept this long for the next request. */
  readonly keepAliveMs: number
  /** A connection on which nothing moves for this long is closed; no run takes as long. A batch has it for each. */
  readonly silenceMs: number
  /** Bytes of request line and headers: 431 above. */
  readonly headerBytes: number
  /** Headers of one request: 431 above. */
  readonly headerCount: number
  /** Connections at once; further ones are closed as they come. */
  readonly connections: number
  /** The same for one address, except this machine and trusted proxies. */
  readonly connectionsPerAddress: number
  /** Requests that may wait on one connection for their answers; one that sends more is closed. */
  readonly maxPipelined: number
  /** How long an answer to an unread body waits for the caller to notice, and how much it swallows meanwhile. */
  readonly lingerMs: number
  readonly lingerBytes: number
  /** The store must answer /readyz within this. */
  readonly readyMs: number
  /** How long a server that stops still accepts connections, for balancers to notice that it is not ready. */
  readonly drainDelayMs: number
  /** A stopping server takes its connections for idle once it has received nothing for this long. */
  readonly quietMs: number
  /** After this, a server that stops cancels the calls under way and answers them 503. */
  readonly cancelAfterMs: number
  /** After this, it closes whatever is still open. */
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
  maxPipelined: 64,
  lingerMs: 1_000,
  lingerBytes: 8 * 1024 * 1024,
  readyMs: 2_000,
  drainDelayMs: 300,
  quietMs: 500,
  cancelAfterMs: 8_000,
  closeAfterMs: 9_500,
}
