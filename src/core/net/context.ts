import type { LookupFunction } from 'node:net'

/** What a conversation with a peer needs from the run that it belongs to. */
export type NetContext = {
  /** Aborts at the deadline, or when the run is cancelled. Everything that is opened must end with it. */
  readonly signal: AbortSignal
  /** Milliseconds left until the deadline: for a server-side statement timeout. */
  readonly msLeft: () => number
  /** Monotonic milliseconds: for durations. */
  readonly now: () => number
  /** The wall clock: for dates. */
  readonly date: () => Date
  /** Every address of a name: the hosts file, then DNS. Cancelled by the signal; never getaddrinfo. */
  readonly resolve: (host: string) => Promise<readonly string[]>
  /** The same for drivers that take a `lookup`. */
  readonly lookup: LookupFunction
}
