/** What a request is answered with, before it becomes bytes on a connection. */
export type HttpAnswer = {
  readonly status: number
  /** Absent: no body. */
  readonly contentType?: string | undefined
  readonly body?: string | undefined
  /** Further headers, flat: name, value, name, value. */
  readonly headers?: readonly string[] | undefined
  /** For a page; everything else is forbidden everything. */
  readonly contentSecurityPolicy?: string | undefined
}
