/** An answer before it is written to a connection. */
export type HttpAnswer = {
  readonly status: number
  /** Absent: no body. */
  readonly contentType?: string | undefined
  readonly body?: string | undefined
  /** Additional headers as a flat list: name, value, name, value. */
  readonly headers?: readonly string[] | undefined
  /** For pages. All other answers get a policy that forbids everything. */
  readonly contentSecurityPolicy?: string | undefined
}
