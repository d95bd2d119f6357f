/** Where a monitor connects to, as configured. */
export type Target = {
  readonly host?: string | undefined
  readonly port?: number | undefined
  /** What tells one database of a server from another. */
  readonly database?: string | undefined
}
