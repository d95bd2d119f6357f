import { gunzipSync } from 'node:zlib'

/** An answer of the server. */
export type Answer = {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Decompressed. */
  readonly body: string
  /** How often `100 Continue` came before it. */
  readonly continued: number
}

const statusLine = /^HTTP\/1\.1 ([1-5]\d\d) [\x20-\x7e]*$/
const headerLine = /^([A-Za-z][A-Za-z0-9-]*): ([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?$/

/** The value of a header, undefined when it is not there. */
export const headerOf = ({ headers }: Answer, name: string): string | undefined =>
  headers.find(([written]) => written.toLowerCase() === name)?.[1]

/** Whether it says that nothing comes after it. */
export const isLast = (answer: Answer): boolean => headerOf(answer, 'connection')?.toLowerCase() === 'close'

/**
 * Takes apart what a server sent, strictly: throws for the first byte that does not belong there. `methods` are those
 * of the requests, in order, because an answer to HEAD says a length and sends nothing. `rest` is what is not complete.
 */
export function readAnswers(
  bytes: Buffer,
  methods: readonly string[],
): { readonly answers: readonly Answer[]; readonly rest: Buffer } {
  const answers: Answer[] = []
  let continued = 0
  let at = 0
  for (;;) {
    const end = bytes.indexOf('\r\n\r\n', at)
    if (end < 0) return { answers, rest: bytes.subarray(at) }
    const [first = '', ...lines] = bytes.toString('latin1', at, end).split('\r\n')
    const status = Number(statusLine.exec(first)?.[1])
    if (Number.isNaN(status)) throw new Error(`no status line: ${JSON.stringify(first.slice(0, 200))}`)
    const headers = lines.map((line) => {
      const matches = headerLine.exec(line)
      if (!matches) throw new Error(`no header: ${JSON.stringify(line.slice(0, 200))}`)
      return [matches[1] ?? '', matches[2] ?? ''] as const
    })
    if (status === 100) {
      if (headers.length > 0) throw new Error('100 Continue with headers')
      continued += 1
      at = end + 4
      continue
    }
    const answer = { status, headers, body: '', continued }
    if (headerOf(answer, 'transfer-encoding') !== undefined) throw new Error('an answer without a length')
    const length = headerOf(answer, 'content-length') ?? ''
    if (!/^\d+$/.test(length)) throw new Error(`an answer of the length '${length}'`)
    const size = methods[answers.length] === 'HEAD' ? 0 : Number(length)
    if (bytes.length < end + 4 + size) return { answers, rest: bytes.subarray(at) }
    const content = bytes.subarray(end + 4, end + 4 + size)
    const isZipped = size > 0 && headerOf(answer, 'content-encoding') === 'gzip'
    answers.push({ ...answer, body: (isZipped ? gunzipSync(content) : content).toString('utf8') })
    continued = 0
    at = end + 4 + size
  }
}
