/** One address under probe. */
export type PeerAddress = {
  readonly ip: string
  readonly port: number
  /** `ip:port`, for messages. */
  readonly address: string
  /** Aborts at the deadline, or when the next address's turn has come. */
  readonly signal: AbortSignal
  readonly step: (check: string) => void
}
